"""One token after another on lanes that do not compete: greedy search, sampling, streaming."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from weft.core.shapes import Bool, Float, Int, Tensor
from weft.core.state import State, select_rows
from weft.decoding.hypothesis import Closed, length_penalty, refuse_nan
from weft.decoding.limits import Rules
from weft.decoding.plan import Plan, constrain, last_tokens

OPEN, FINISHED, CUT, LOST = range(4)

Choose = Callable[[Tensor, Tensor, int], Tensor]  # (allowed (B, V), keys (B,), step) -> tokens (B,)


class Lanes(NamedTuple):
    """Outputs being written: one entry a lane, `samples` lanes a row."""

    place: Int[Tensor, "B"]  # row · samples + sample
    key: Int[Tensor, "B"]  # names the lane's own stream of chance
    history: Int[Tensor, "B T"]
    log_prob: Float[Tensor, "B"]
    rules: Rules


def open_lanes(rules: Rules, keys: Int[Tensor, "B"]) -> Lanes:
    """Begin one empty output on each lane."""
    count = len(keys)
    place = torch.arange(count, device=keys.device)
    return Lanes(place, keys, place.new_zeros(count, 0), torch.zeros(count, device=keys.device), rules)


def roll(plan: Plan, choose: Choose, lanes: Lanes, state: State, samples: int) -> list[Closed]:
    """Write every lane to its end. Rows leave the batch when their last lane ends."""
    closed: list[Closed] = []
    silent = torch.zeros(
        len(lanes.place) // samples, samples, dtype=torch.bool
    )  # lanes that ended, on the host
    while silent.numel():
        lanes, state, fate = advance(plan, choose, lanes, state)
        fates = fate.cpu().view_as(silent).masked_fill(silent, OPEN)  # the one wait for the device in a step
        if bool((fates == OPEN).all()):
            continue
        refuse_nan(lanes.place // samples, (fates == LOST).flatten(), lanes.history.shape[1] - 1)
        closed.append(close(lanes, fates.flatten(), samples, plan.config.length_penalty))
        silent = silent | (fates != OPEN)
        silent, lanes, state = shrink(plan, silent, lanes, state)
    return closed


def advance(plan: Plan, choose: Choose, lanes: Lanes, state: State) -> tuple[Lanes, State, Int[Tensor, "B"]]:
    """Take one token on every lane; also return each lane's fate."""
    step = lanes.history.shape[1]
    log_probs, state = plan.stepper.step(last_tokens(lanes.history, plan.bos), state)
    allowed = constrain(log_probs.float(), lanes.history, lanes.rules, plan)
    token = choose(allowed, lanes.key, step)
    gain = allowed.gather(1, token.unsqueeze(1)).squeeze(1)
    fate = judge(token == plan.eos, gain, lanes.rules.most <= step)
    history = torch.cat([lanes.history, token.unsqueeze(1)], 1)
    log_prob = lanes.log_prob + gain.masked_fill(fate == CUT, 0)
    return lanes._replace(history=history, log_prob=log_prob), state, fate


def judge(ends: Bool[Tensor, "B"], gain: Float[Tensor, "B"], full: Bool[Tensor, "B"]) -> Int[Tensor, "B"]:
    """Say what became of each lane: FINISHED by eos, CUT when full or left without a token, LOST by NaN."""
    dead = gain == -torch.inf
    fate = torch.where(full | dead, CUT, OPEN)
    fate = torch.where(ends & ~dead, FINISHED, fate)
    return torch.where(gain.isnan(), LOST, fate)


def close(lanes: Lanes, fates: Int[Tensor, "B"], samples: int, alpha: float) -> Closed:
    """Take the outputs that ended in this step, without the token that ended them."""
    ended = (fates != OPEN).nonzero().squeeze(1)
    finished = (fates[ended] == FINISHED).to(lanes.place.device, non_blocking=True)
    lanes = select_rows(lanes, ended.to(lanes.place.device, non_blocking=True))
    tokens = lanes.history[:, :-1]
    length = torch.full_like(lanes.place, tokens.shape[1])
    score = lanes.log_prob / length_penalty(tokens.shape[1], alpha)
    row, rank = lanes.place // samples, lanes.place % samples
    return Closed(row, rank, tokens, length, lanes.log_prob, score, finished)


def shrink(
    plan: Plan, silent: Bool[Tensor, "R W"], lanes: Lanes, state: State
) -> tuple[Bool[Tensor, "R2 W2"], Lanes, State]:
    """Leave out rows without an open lane, then as many ended lanes as blocks of equal width allow."""
    width = int((~silent).sum(1).max())
    rows = (~silent).any(1).nonzero()
    within = silent[rows.squeeze(1)].byte().argsort(dim=1, stable=True)[:, :width]  # open lanes first
    kept = (rows * silent.shape[1] + within).flatten()
    if len(kept) == silent.numel():
        return silent, lanes, state
    silent = silent.flatten()[kept].view(within.shape)
    if len(kept):
        index = kept.to(lanes.place.device, non_blocking=True)
        lanes, state = select_rows(lanes, index), plan.stepper.select(state, index)
    return silent, lanes, state
