"""Beam search: the W best open hypotheses of every row, all rows at once.

In each step a row's W lanes offer W · V continuations. Of the 2W best, an eos among the first W
finishes its hypothesis, and the W best others go on: the beam never shrinks, and since a lane
offers eos once, 2W always suffice. A row ends when no open hypothesis can beat the worst it keeps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch.nn import functional as F

from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Bool, Float, Int, Tensor
from weft.core.state import State, select_rows
from weft.decoding.config import DecodingConfig
from weft.decoding.greedy import greedy
from weft.decoding.hypothesis import Closed, Hypothesis, collect, length_penalty, refuse_nan
from weft.decoding.limits import Limits, Rules
from weft.decoding.plan import Plan, begin, constrain, last_tokens
from weft.decoding.ranking import best

OPEN, DONE, LOST = range(3)


class Lanes(NamedTuple):
    """Open hypotheses: one entry a lane, W lanes a row (one in the first step)."""

    history: Int[Tensor, "B T"]
    log_prob: Float[Tensor, "B"]  # -inf: nothing there
    rules: Rules


class Rows(NamedTuple):
    """What a row holds besides its lanes: its number, and the best finished hypotheses so far, best first."""

    number: Int[Tensor, "R"]
    score: Float[Tensor, "R W"]  # -inf: nothing there yet
    log_prob: Float[Tensor, "R W"]
    length: Int[Tensor, "R W"]
    tokens: Int[Tensor, "R W T"]


class Picked(NamedTuple):
    """The 2W best continuations of each row, best first."""

    log_prob: Float[Tensor, "R W"]
    parent: Int[Tensor, "R W"]  # lane within the row
    token: Int[Tensor, "R W"]


@torch.no_grad()
def beam(
    stepper: Stepper,
    source: Any,
    batch_size: int,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None = None,
    prefix: Sequences | None = None,
) -> list[list[Hypothesis]]:
    """Return each row's `nbest` hypotheses with the highest score = log p / ((5 + length) / 6)^α.

    Finished ones come first, best first; where fewer than `nbest` finished within the row's limit,
    the best unfinished ones follow. A beam of one is greedy search.
    """
    if config.beam == 1 or batch_size == 0:
        return greedy(stepper, source, batch_size, config, bos, eos, limits, prefix)
    plan, rules, state = begin(stepper, source, batch_size, config, bos, eos, limits, prefix)
    return collect(search(plan, rules, state), batch_size, config.nbest)


def search(plan: Plan, rules: Rules, state: State) -> list[Closed]:
    """Search all rows to their ends."""
    lanes, rows = first_lanes(rules), first_rows(len(rules.most), plan.config.nbest, rules.most.device)
    closed: list[Closed] = []
    while len(rows.number):
        picked, lost, state = expand(plan, lanes, state, len(rows.number))
        ends = finishing(picked, plan)
        kept = keep(rows, picked, ends, lanes, plan.config.length_penalty)
        grown, parents = extend(lanes, picked, plan)
        # the next line holds the search's one wait for the device in a step; a stepper's may come on top
        fates = judge(kept, grown, lost, plan.config.length_penalty).cpu()
        refuse_nan(rows.number, fates == LOST, step_of(lanes))
        if bool((fates == DONE).any()):
            closed.append(close(kept, lanes, lanes_ending(picked, ends, lanes), fates == DONE, plan))
        lanes, rows, state = carry_on(plan, grown, kept, parents, state, fates == OPEN)
    return closed


def first_lanes(rules: Rules) -> Lanes:
    """Begin one empty hypothesis a row."""
    count = len(rules.most)
    return Lanes(rules.most.new_zeros(count, 0), torch.zeros(count, device=rules.most.device), rules)


def first_rows(count: int, nbest: int, device: torch.device) -> Rows:
    """Begin with nothing finished."""
    nothing = torch.full((count, nbest), -torch.inf, device=device)
    lengths = torch.zeros(count, nbest, dtype=torch.int64, device=device)
    return Rows(
        torch.arange(count, device=device), nothing, nothing, lengths, lengths.new_zeros(count, nbest, 0)
    )


def step_of(lanes: Lanes) -> int:
    """Return how many tokens every lane holds."""
    return lanes.history.shape[1]


def expand(plan: Plan, lanes: Lanes, state: State, rows: int) -> tuple[Picked, Bool[Tensor, "R"], State]:
    """Find each row's 2W best continuations; also say which rows got NaN."""
    log_probs, state = plan.stepper.step(last_tokens(lanes.history, plan.bos), state)
    log_probs = log_probs.float()
    allowed = constrain(log_probs, lanes.history, lanes.rules, plan)
    total = (lanes.log_prob.unsqueeze(1) + allowed).view(rows, -1)  # (R, W · V)
    log_prob, place = best(total, 2 * plan.config.beam)
    lost = log_probs[:, plan.eos].isnan().view(rows, -1).any(1)  # softmax spreads a NaN over the row
    vocabulary, width = log_probs.shape[1], len(lanes.history) // rows
    parent = (place // vocabulary).clamp(max=width - 1)  # places past the end hold -inf
    return Picked(log_prob, parent, place % vocabulary), lost, state


def finishing(picked: Picked, plan: Plan) -> Bool[Tensor, "R W"]:
    """Say which of the W best continuations end their hypothesis."""
    ends = (picked.token == plan.eos) & (picked.log_prob > -torch.inf)
    return ends[:, : plan.config.beam]


def keep(rows: Rows, picked: Picked, ends: Bool[Tensor, "R W"], lanes: Lanes, alpha: float) -> Rows:
    """Merge the hypotheses that finish now into the best so far."""
    count, width = ends.shape
    step = step_of(lanes)
    log_prob = picked.log_prob[:, :width].masked_fill(~ends, -torch.inf)
    histories = lanes.history.unflatten(0, (count, -1))
    new = Rows(
        rows.number,
        log_prob / length_penalty(step, alpha),
        log_prob,
        torch.full_like(picked.token[:, :width], step),
        histories.gather(1, picked.parent[:, :width, None].expand(-1, -1, step)),  # (R, W, T)
    )
    old = rows._replace(tokens=F.pad(rows.tokens, (0, step - rows.tokens.shape[2])))
    return _best_rows(old, new, rows.score.shape[1])


def _best_rows(old: Rows, new: Rows, count: int) -> Rows:
    """Keep the `count` best of both, the older of equals."""
    _, log_prob, length, tokens = (torch.cat(pair, 1) for pair in zip(old[1:], new[1:], strict=True))
    score, order = best(torch.cat([old.score, new.score], 1), count)
    tokens = tokens.gather(1, order.unsqueeze(2).expand(-1, -1, tokens.shape[2]))
    return Rows(old.number, score, log_prob.gather(1, order), length.gather(1, order), tokens)


def extend(lanes: Lanes, picked: Picked, plan: Plan) -> tuple[Lanes, Int[Tensor, "B"]]:
    """Carry the W best continuations without eos on; also return which lane each came from."""
    rows, width = len(picked.token), len(lanes.history) // len(picked.token)
    order = (picked.token == plan.eos).byte().argsort(dim=1, stable=True)[:, : plan.config.beam]
    log_prob, parent, token = (part.gather(1, order) for part in picked)
    starts = torch.arange(rows, device=parent.device).unsqueeze(1) * width
    parents = (starts + parent).flatten()
    old = select_rows(lanes, parents)
    full = old.rules.most <= step_of(lanes)  # such a row may only have ended
    history = torch.cat([old.history, token.view(-1, 1)], 1)
    return Lanes(history, log_prob.flatten().masked_fill(full, -torch.inf), old.rules), parents


def judge(rows: Rows, lanes: Lanes, lost: Bool[Tensor, "R"], alpha: float) -> Int[Tensor, "R"]:
    """Say whether a row is DONE: no open hypothesis can beat the worst of those kept.

    log p only falls and the penalty only grows, so log p now over the penalty of the longest length
    bounds every score to come. No open hypothesis at all counts as a bound of -inf.
    """
    open_best = lanes.log_prob.view(len(lost), -1).amax(1)
    most = lanes.rules.most.view(len(lost), -1)[:, 0]
    settled = open_best / length_penalty(most, alpha) <= rows.score[:, -1]
    return torch.where(lost, LOST, torch.where(settled, DONE, OPEN))


def lanes_ending(picked: Picked, ends: Bool[Tensor, "R W"], lanes: Lanes) -> Bool[Tensor, "R W2"]:
    """Say which lanes finished a hypothesis in this step."""
    rows, width = len(ends), len(lanes.history) // len(ends)
    parent = torch.where(ends, picked.parent[:, : ends.shape[1]], width)  # one column more, for the others
    flags = torch.zeros(rows, width + 1, dtype=torch.bool, device=ends.device)
    return flags.scatter_(1, parent, True)[:, :-1]


def close(
    rows: Rows, lanes: Lanes, ended: Bool[Tensor, "R W"], done: Bool[Tensor, "R"], plan: Plan
) -> Closed:
    """Take the rows that are done: what they keep, then what was open before this step, best first."""
    index = done.nonzero().squeeze(1).to(rows.number.device, non_blocking=True)
    unfinished = select_rows(_as_rows(rows, lanes, ended, plan.config.length_penalty), index)
    kept = select_rows(rows, index)
    count, ranks = len(index), kept.score.shape[1] + unfinished.score.shape[1]
    score, log_prob, length, tokens = (
        torch.cat(pair, 1) for pair in zip(kept[1:], unfinished[1:], strict=True)
    )
    rank = torch.arange(ranks, device=index.device)
    return Closed(
        row=kept.number.repeat_interleave(ranks),
        rank=rank.repeat(count),
        tokens=tokens.flatten(0, 1),
        length=length.flatten(),
        log_prob=log_prob.flatten(),
        score=score.flatten(),
        finished=(rank < kept.score.shape[1]).repeat(count),
    )


def _as_rows(rows: Rows, lanes: Lanes, ended: Bool[Tensor, "R W"], alpha: float) -> Rows:
    """See the open lanes as hypotheses of their rows; those that ended count for nothing."""
    step = step_of(lanes)
    log_prob = lanes.log_prob.view(ended.shape).masked_fill(ended, -torch.inf)
    tokens = lanes.history.view(*ended.shape, step)
    length = torch.full_like(tokens.sum(2), step)
    return Rows(rows.number, log_prob / length_penalty(step, alpha), log_prob, length, tokens)


def carry_on(
    plan: Plan, lanes: Lanes, rows: Rows, parents: Int[Tensor, "B"], state: State, still: Bool[Tensor, "R"]
) -> tuple[Lanes, Rows, State]:
    """Let the model follow the lanes of the rows still open, in one selection; the other rows leave."""
    if not bool(still.all()):
        index = still.nonzero().squeeze(1)
        within = torch.arange(plan.config.beam)
        kept = (index.unsqueeze(1) * plan.config.beam + within).flatten()
        index, kept = (part.to(parents.device, non_blocking=True) for part in (index, kept))
        rows, lanes, parents = select_rows(rows, index), select_rows(lanes, kept), parents[kept]
    if len(parents):
        state = plan.stepper.select(state, parents)
    return lanes, rows, state
