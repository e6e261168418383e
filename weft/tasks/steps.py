"""Parts of numeric series by position within each series."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from weft.core.errors import DataError
from weft.data import LineCounts, Row, Rows

PARTS = ("train", "valid", "test")


class StepRows:
    """Every series of a source cut in three: train, then valid, then test.

    The cuts follow `fractions` of a series, or `counts` of steps (what lies behind them is left out).
    Valid and test begin `lookback` steps early, so that their first step can be told from a history.
    """

    def __init__(
        self,
        source: Rows,
        part: str,
        fractions: Sequence[float],
        lookback: int = 0,
        counts: Sequence[int] = (),
    ):
        self.source, self.part, self.fractions = source, part, tuple(fractions)
        self.lookback, self.sizes, self.kinds = lookback, tuple(counts), source.kinds

    @property
    def description(self) -> str:
        place = PARTS.index(self.part)
        share = f"{self.sizes[place]:,} steps" if self.sizes else f"{self.fractions[place]:.0%}"
        return f"{self.source.description}; {self.part}: {share} of each series by position"

    @property
    def counts(self) -> LineCounts:
        return self.source.counts

    def __iter__(self) -> Iterator[Row]:
        for row in self.source:
            begin, end = self._bounds(row)
            if end > begin:
                first = begin if self.part == "train" else max(begin - self.lookback, 0)
                yield Row(row.number, (row.values[0][first:end], *row.values[1:]))

    def _bounds(self, row: Row) -> tuple[int, int]:
        """Return where this part of a series begins and ends."""
        size, place = len(row.values[0]), PARTS.index(self.part)
        if sum(self.sizes) > size:
            raise DataError(
                f"Line {row.number}: `task.counts` {self.sizes} are {sum(self.sizes):,} steps, but the "
                f"series has {size:,}. Lower them, or use `data.fractions`."
            )
        shares = self.sizes or [share * size for share in self.fractions]
        return round(sum(shares[:place])), round(sum(shares[: place + 1]))

    def collecting(self, faults: Any) -> StepRows:
        """Return the same view handing broken lines to `faults`."""
        source = self.source.collecting(faults)
        return StepRows(source, self.part, self.fractions, self.lookback, self.sizes)
