"""What a report is made of: runs, what they measured, where they looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from numpy import ndarray

from weft.metrics import Evaluation


@dataclass(frozen=True, eq=False)
class Alignment:
    """Attention weights (target, source) of one prediction, and the true (target, source) pairs if known."""

    weights: ndarray
    source: Sequence[str]
    target: Sequence[str]
    title: str = ""
    truth: Sequence[tuple[int, int]] = ()


@dataclass(frozen=True, eq=False)
class Entry:
    """One run of a comparison. All entries are evaluated on the same items in the same order.

    history  the rows of its metrics.jsonl
    seconds  training time
    speeds   what was timed -> units a second: {"training, target tokens/s": 12000.0}
    """

    name: str
    parameters: int
    evaluation: Evaluation
    history: Sequence[Mapping[str, Any]] = ()
    seconds: float = 0.0
    speeds: Mapping[str, float] = field(default_factory=dict)
    alignments: Sequence[Alignment] = ()


def duration(seconds: float) -> str:
    """Write a time: 4.2 s, 3 min 20 s, 2 h 05 min."""
    if seconds < 59.95:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"


def rate(value: float) -> str:
    """Write units a second: 12,300 or 4.2."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 100 else f"{value:.3g}"
