"""What every search shares: what stays the same through it, how it begins, what it may choose from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State, leaves
from weft.decoding.config import DecodingConfig
from weft.decoding.filters import forbid_end, forbid_repeats, force_prefix
from weft.decoding.limits import Limits, Rules, row_limits, row_rules


@dataclass(frozen=True)
class Plan:
    """What stays the same from the first token to the last."""

    stepper: Stepper
    config: DecodingConfig
    bos: int
    eos: int
    early: int  # from this many tokens on, no row forbids eos


def begin(
    stepper: Stepper,
    source: Any,
    batch_size: int,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None,
    prefix: Sequences | None,
) -> tuple[Plan, Rules, State]:
    """Check limits and prefixes, then start the stepper: one lane a row."""
    checked = row_limits(limits, batch_size, config)
    rules = row_rules(checked, prefix, eos)
    plan = Plan(stepper, config, bos, eos, early=int(checked.least.max()))
    state = stepper.start(source)
    device = device_of(state)
    return plan, Rules(*(part.to(device) for part in rules)), state


def device_of(state: State) -> torch.device:
    """Return where a state lives."""
    return next((leaf.device for leaf in leaves(state)), torch.device("cpu"))


def last_tokens(history: Int[Tensor, "B T"], bos: int) -> Int[Tensor, "B"]:
    """Return what each lane said last: bos at the beginning."""
    if history.shape[1]:
        return history[:, -1]
    return history.new_full((len(history),), bos)


def constrain(
    log_probs: Float[Tensor, "B V"], history: Int[Tensor, "B T"], rules: Rules, plan: Plan
) -> Float[Tensor, "B V"]:
    """Set to -inf what may not come next: an early end, a repeated run, all but a forced token."""
    step = history.shape[1]
    allowed = log_probs
    if step < plan.early:
        allowed = forbid_end(allowed, rules.least > step, plan.eos)
    if plan.config.no_repeat_ngram:
        allowed = forbid_repeats(allowed, history, plan.config.no_repeat_ngram)
    if step < rules.prefix.shape[1]:
        allowed = force_prefix(allowed, log_probs, rules, step)
    return allowed
