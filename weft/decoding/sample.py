"""Sampling: tokens drawn as likely as the model says, each row from its own stream of chance."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from weft.core.protocols import Stepper
from weft.core.rng import derive
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import select_rows
from weft.decoding.config import DecodingConfig
from weft.decoding.filters import min_p, top_k, top_p
from weft.decoding.greedy import most_likely
from weft.decoding.hypothesis import Hypothesis, collect
from weft.decoding.limits import Limits
from weft.decoding.plan import begin
from weft.decoding.rollout import Choose, open_lanes, roll


@torch.no_grad()
def sample(
    stepper: Stepper,
    source: Any,
    batch_size: int,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None = None,
    prefix: Sequences | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Draw `samples` outputs a row: y_t ~ p(y | y_<t) after temperature, top-k, top-p, min-p.

    Sample j of a row depends on (seed, the row's number, j) and its source alone. `numbers` names
    the rows (0, 1, … by default); give each row's number in the whole corpus to make the result
    independent of how it was cut into batches. `log_prob` is the model's, before the filters.
    """
    if batch_size == 0:
        return []
    plan, rules, state = begin(stepper, source, batch_size, config, bos, eos, limits, prefix)
    if config.samples > 1:
        blocks = torch.arange(batch_size, device=rules.most.device).repeat_interleave(config.samples)
        rules, state = select_rows(rules, blocks), stepper.select(state, blocks)
    keys = lane_keys(config, range(batch_size) if numbers is None else numbers).to(rules.most.device)
    closed = roll(plan, chooser(config), open_lanes(rules, keys), state, config.samples)
    return collect(closed, batch_size, config.samples)


def lane_keys(config: DecodingConfig, numbers: Sequence[int]) -> Int[Tensor, "B"]:
    """Return the key of every lane's stream: a hash of seed, row and sample."""
    names = [(number, number_of_sample) for number in numbers for number_of_sample in range(config.samples)]
    return torch.tensor([derive(config.seed, "decoding", *name) for name in names], dtype=torch.int64)


def chooser(config: DecodingConfig) -> Choose:
    """Return the function that draws the next token of every lane."""
    if config.temperature == 0:
        return most_likely

    def draw(allowed: Tensor, keys: Tensor, step: int) -> Tensor:
        likeliest = allowed.amax(1, keepdim=True)  # taken off first, so that no temperature overflows
        scores, tokens = shortlist((allowed - likeliest) / config.temperature, config)
        place = invert(min_p(scores, config.min_p), uniform(keys, step)).unsqueeze(1)
        return place.squeeze(1) if tokens is None else tokens.gather(1, place).squeeze(1)

    return draw


def shortlist(scores: Float[Tensor, "B V"], config: DecodingConfig) -> tuple[Tensor, Tensor | None]:
    """Return the scores in play and their tokens (None: all, in place). Only top-p alone sorts them all."""
    if config.top_k:
        ranked, tokens = top_k(scores, config.top_k)
    elif config.top_p < 1:
        ranked, tokens = scores.sort(dim=1, descending=True, stable=True)
    else:
        return scores, None
    return (top_p(ranked, config.top_p) if config.top_p < 1 else ranked), tokens


def invert(scores: Float[Tensor, "B V"], chance: Float[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Draw by the inverse of the distribution function: the first place with P(place' <= place) > chance."""
    cumulative = scores.softmax(1).double().cumsum(1)
    target = chance.unsqueeze(1) * cumulative[:, -1:]
    place = torch.searchsorted(cumulative, target, right=True).squeeze(1)
    return place.clamp(max=scores.shape[1] - 1)  # a lane with nothing allowed holds NaN: any place will do


_STEP, _FIRST, _SECOND = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB


def uniform(keys: Int[Tensor, "B"], step: int) -> Float[Tensor, "B"]:
    """Return number `step` of each key's stream, in [0, 1): the SplitMix64 generator, on any device.

    A stream is a pure function, so no state is kept and lanes may come and go.
    """
    z = keys + _signed(_STEP * (step + 1))
    z = (z ^ _shift(z, 30)) * _signed(_FIRST)
    z = (z ^ _shift(z, 27)) * _signed(_SECOND)
    return _shift(z ^ _shift(z, 31), 24).double() * 2.0**-40


def _signed(number: int) -> int:
    """Return the int64 with the same last 64 bits."""
    return (number + 2**63) % 2**64 - 2**63


def _shift(z: Tensor, bits: int) -> Tensor:
    """Shift right, filling with zeros."""
    return (z >> bits) & (2 ** (64 - bits) - 1)
