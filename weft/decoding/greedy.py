"""Greedy search: always the most likely token."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.decoding.config import DecodingConfig
from weft.decoding.hypothesis import Hypothesis, collect
from weft.decoding.limits import Limits
from weft.decoding.plan import begin
from weft.decoding.rollout import open_lanes, roll


@torch.no_grad()
def greedy(
    stepper: Stepper,
    source: Any,
    batch_size: int,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None = None,
    prefix: Sequences | None = None,
) -> list[list[Hypothesis]]:
    """Take the most likely token until it is eos: y_t = argmax p(y | y_<t). One hypothesis a row."""
    if batch_size == 0:
        return []
    plan, rules, state = begin(stepper, source, batch_size, config, bos, eos, limits, prefix)
    lanes = open_lanes(rules, keys=torch.zeros_like(rules.most))
    return collect(roll(plan, most_likely, lanes, state, samples=1), batch_size, 1)


def most_likely(allowed: Float[Tensor, "B V"], keys: Int[Tensor, "B"], step: int) -> Int[Tensor, "B"]:
    """Return the most likely token, the first of equals; no chance is used."""
    return allowed.argmax(1)
