"""What a search returns, and how it gets there from tensors."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple

import torch
from torch.nn import functional as F

from weft.core.errors import ArtefactError
from weft.core.shapes import Bool, Float, Int, Tensor


@dataclass(frozen=True, slots=True)
class Hypothesis:
    """One output of a search.

    tokens    without bos and eos; a forced prefix is part of them
    log_prob  log p(tokens, eos | source) under the model; without eos when unfinished
    score     log_prob / length_penalty(len(tokens), α): what beam search ranks by
    finished  True: the model ended it; False: it was cut at its longest length
    """

    tokens: list[int]
    log_prob: float
    score: float
    finished: bool


class Closed(NamedTuple):
    """Hypotheses that ended, still on the device: one entry each."""

    row: Int[Tensor, "B"]
    rank: Int[Tensor, "B"]  # its place among its row's hypotheses
    tokens: Int[Tensor, "B T"]
    length: Int[Tensor, "B"]
    log_prob: Float[Tensor, "B"]
    score: Float[Tensor, "B"]
    finished: Bool[Tensor, "B"]


def length_penalty(length: Tensor | float, alpha: float) -> Tensor | float:
    """Divide a log-probability by this: ((5 + length) / 6)^α, length without bos and eos."""
    return ((5 + length) / 6) ** alpha


def collect(closed: list[Closed], rows: int, count: int) -> list[list[Hypothesis]]:
    """Bring closed hypotheses to the host: for each row at most `count`, in the order of their rank."""
    found: list[list[tuple[int, Hypothesis]]] = [[] for _ in range(rows)]
    for row, rank, hypothesis in _read(_join(closed)):
        found[row].append((rank, hypothesis))
    return [[hypothesis for _, hypothesis in sorted(pairs, key=itemgetter(0))[:count]] for pairs in found]


def refuse_nan(rows: Tensor, lost: Tensor, step: int) -> None:
    """Refuse to go on when the model gave NaN where `lost` (on the host) is True."""
    if bool(lost.any()):
        row = int(rows.cpu()[lost][0]) + 1
        raise ArtefactError(
            f"Log-probabilities must be numbers, but the model gave NaN for row {row} at token {step + 1}. "
            "Its weights may be damaged: try an earlier checkpoint, or fp32."
        )


def _join(closed: list[Closed]) -> Closed:
    """Lay all hypotheses into one padded batch, so that each column is read back once."""
    longest = max(part.tokens.shape[1] for part in closed)
    padded = [
        part._replace(tokens=F.pad(part.tokens, (0, longest - part.tokens.shape[1]))) for part in closed
    ]
    return Closed(*(torch.cat(column) for column in zip(*padded, strict=True)))


def _read(closed: Closed) -> Iterator[tuple[int, int, Hypothesis]]:
    columns = [column.tolist() for column in closed]
    for row, rank, tokens, length, log_prob, score, finished in zip(*columns, strict=True):
        if score > -torch.inf:
            yield row, rank, Hypothesis(tokens[:length], log_prob, score, finished)
