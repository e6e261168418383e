"""Split rows into parts: by a hash of the input, so duplicates stay together, or by position."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from weft.core.errors import ConfigError, DataError
from weft.data.lines import LineCounts, Refuse
from weft.data.rows import Row
from weft.data.source import Rows, digest

PARTS = ("train", "valid", "test")
FRACTIONS = (0.8, 0.1, 0.1)


def bucket(value: Any) -> float:
    """Return a number in [0, 1) that depends on the input alone: the first 53 bits of its sha256."""
    return (int.from_bytes(digest(value)[:8], "big") >> 11) / (1 << 53)


def hash_split(fractions: Sequence[float] = FRACTIONS) -> Callable[[Any], str]:
    """Return the function from an input to its part: `train`, `valid` or `test`."""
    train, valid, test = check_fractions(fractions)

    def part(value: Any) -> str:
        place = bucket(value) * (train + valid + test)
        return "train" if place < train else "valid" if place < train + valid else "test"

    return part


def check_fractions(fractions: Sequence[float]) -> tuple[float, float, float]:
    """Hold three fractions against their rule: none negative, sum 1."""
    good = len(fractions) == 3 and all(fraction >= 0 for fraction in fractions)
    if not good or abs(sum(fractions) - 1) > 1e-6:
        shown = ", ".join(map(str, fractions))
        raise ConfigError(
            f"`fractions` must be three shares adding up to 1, but is ({shown}). Try 0.8, 0.1, 0.1."
        )
    return fractions[0], fractions[1], fractions[2]


class SplitRows:
    """The rows of a source whose input hashes into one part."""

    def __init__(self, source: Rows, part: str, fractions: Sequence[float] = FRACTIONS):
        _check_part(part)
        self.source, self.part, self.fractions = source, part, tuple(fractions)
        self.kinds = source.kinds
        self._part_of = hash_split(fractions)

    @property
    def description(self) -> str:
        share = self.fractions[PARTS.index(self.part)]
        return f"{self.source.description}; {self.part}: {share:.0%} by a hash of the input"

    @property
    def counts(self) -> LineCounts:
        return self.source.counts

    def __iter__(self) -> Iterator[Row]:
        empty = True
        for row in self.source:
            if self._part_of(row.values[0]) == self.part:
                empty = False
                yield row
        if empty:
            _refuse_empty(
                self.part, self.source, ": a hash of the input decides, so equal inputs stay together"
            )

    def collecting(self, faults: Refuse) -> SplitRows:
        """Return the same view handing broken lines to `faults`."""
        return SplitRows(self.source.collecting(faults), self.part, self.fractions)


class PositionRows:
    """The rows of a source that begin in one part of it by position: train, then valid, then test.

    Position counts characters (words, steps) of the input and one for its end, so a text is cut at
    the line in which a part begins.
    """

    def __init__(self, source: Rows, part: str, fractions: Sequence[float] = FRACTIONS):
        _check_part(part)
        self.source, self.part, self.fractions = source, part, check_fractions(fractions)
        self.kinds = source.kinds

    @property
    def description(self) -> str:
        share = self.fractions[PARTS.index(self.part)]
        return f"{self.source.description}; {self.part}: {share:.0%} by position"

    @property
    def counts(self) -> LineCounts:
        return self.source.counts

    def __iter__(self) -> Iterator[Row]:
        total = sum(_size(row) for row in self.source)
        train, valid, _ = self.fractions
        starts = {"train": 0.0, "valid": train * total, "test": (train + valid) * total}
        ends = {"train": starts["valid"], "valid": starts["test"], "test": float(total)}
        yield from self._between(starts[self.part], ends[self.part])

    def _between(self, start: float, end: float) -> Iterator[Row]:
        position, empty = 0, True
        for row in self.source:
            if start <= position < end:
                empty = False
                yield row
            position += _size(row)
        if empty:
            _refuse_empty(self.part, self.source, "")

    def collecting(self, faults: Refuse) -> PositionRows:
        """Return the same view handing broken lines to `faults`."""
        return PositionRows(self.source.collecting(faults), self.part, self.fractions)


def _size(row: Row) -> int:
    return len(row.values[0]) + 1


def _check_part(part: str) -> None:
    if part not in PARTS:
        raise ConfigError(f"There is no part `{part}`. Name one of {', '.join(PARTS)}.")


def _refuse_empty(part: str, source: Rows, why: str) -> None:
    rule = f"The part `{part}` gets no row of {source.description.split(': ')[0]}{why}."
    raise DataError(f"{rule} Give more rows, or a file of its own: data.{part}=FILE.")
