"""What a reader is, and the table of all readers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from weft.core.errors import DataError
from weft.core.registry import Registry
from weft.data.lines import BROKEN, FaultList, LineCounts, Refuse, read_lines
from weft.data.readers.cells import convert
from weft.data.rows import ReadOptions, Row

TARGETS = ("label", "labels", "value")


@dataclass(frozen=True)
class Files:
    """What a reader is given: where the data lies, how to read it, and where counts and faults go."""

    paths: tuple[Path, ...]
    options: ReadOptions
    kinds: tuple[str, ...]
    counts: LineCounts
    refuse: Refuse
    glance: bool = False  # only a look ahead

    @property
    def path(self) -> Path:
        """The first path: the only one, for most formats."""
        return self.paths[0]

    def lines(self, path: Path | None = None) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines of a path (the first by default) that are not broken."""
        return ((line, text) for line, text in self.all_lines(path or self.path) if text is not BROKEN)

    def all_lines(self, path: Path) -> Iterator[tuple[int, str]]:
        """Yield the numbered lines of a path, BROKEN for a broken one."""
        return read_lines(path, self.options.max_line, self.counts, self.refuse, not self.glance)

    def quietly(self) -> Files:
        """Return the same files for a look ahead: nothing is counted, no fault is raised."""
        return replace(self, counts=LineCounts(), refuse=FaultList(), glance=True)

    def row(self, number: int, raws: tuple[Any, ...], path: Path | None = None) -> Iterator[Row]:
        """Yield the row made of `raws`, or hand its fault to `refuse` and yield nothing."""
        try:
            values = tuple(
                convert(kind, raw, self.options, self.counts)
                for kind, raw in zip(self.kinds, raws, strict=True)
            )
            _check_pairs(self.kinds, values)
        except ValueError as error:
            self.refuse(path or self.path, number, str(error))
        else:
            yield Row(number, values)

    def place(self, source: Any, target: Any) -> tuple[Any, ...]:
        """Put an input and its target in the order of the kinds."""
        return tuple(target if kind in TARGETS else source for kind in self.kinds)

    def need_kinds(self, form: str, gives: tuple[str, ...]) -> None:
        """Refuse kinds that the format `form` does not give."""
        extra = [kind for kind in self.kinds if kind not in gives]
        if extra or len(self.kinds) > 2 or sum(kind not in TARGETS for kind in self.kinds) > 1:
            rule = f"Format `{form}` gives {' and '.join(gives)}, but {', '.join(self.kinds)} are wanted."
            raise DataError(f"{self.path}: {rule} Name another with data.format=.")


def _check_pairs(kinds: tuple[str, ...], values: tuple[Any, ...]) -> None:
    """Hold the number of labels against the number of words."""
    row = dict(zip(kinds, values, strict=True))
    if "words" in row and "labels" in row and len(row["words"]) != len(row["labels"]):
        words, labels = len(row["words"]), len(row["labels"])
        raise ValueError(f"There are {words} words, but {labels} labels. Give one label a word.")


@dataclass(frozen=True)
class Reader:
    """A format: how to yield its rows, and how to say in one line what it was taken for."""

    read: Callable[[Files], Iterator[Row]]
    describe: Callable[[Files], str]


readers: Registry[Reader] = Registry("data.format")
