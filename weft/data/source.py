"""A source of rows: files or memory, read anew each time it is iterated."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from weft.core.errors import DataError, InputError
from weft.data.lines import FaultList, LineCounts, Refuse, refuse
from weft.data.locate import locate
from weft.data.readers import Files, Reader, readers
from weft.data.readers.infer import infer_format, named_format
from weft.data.rows import ReadOptions, Row, counted

Paths = str | Path | Sequence[str | Path]
_PARTS = ("train", "valid", "test")


class Rows(Protocol):
    """What reads as rows: a RowSource or a view of one."""

    kinds: tuple[str, ...]

    @property
    def description(self) -> str: ...

    @property
    def counts(self) -> LineCounts: ...

    def __iter__(self) -> Iterator[Row]: ...

    def collecting(self, faults: Refuse) -> Rows: ...


class RowSource:
    """Rows of one or more files, or of memory; iterate it as often as needed."""

    def __init__(
        self,
        paths: Paths,
        options: ReadOptions | None = None,
        kinds: tuple[str, ...] = ("text",),
        *,
        reader: Reader | None = None,
        on_fault: Refuse = refuse,
    ):
        given = (paths,) if isinstance(paths, str | Path) else tuple(paths)
        if not given:
            raise DataError("A data source needs a file. Give one: data.train=FILE.")
        options, names = _take_part(options or ReadOptions(), given)
        located = tuple(path if reader else locate(path) for path in names)
        if reader is None and options.format == "auto":
            options = replace(options, format=infer_format(located, kinds, options.max_line))
        self.kinds = tuple(kinds)
        self.counts = LineCounts()
        self.files = Files(located, options, self.kinds, self.counts, on_fault)
        self.reader = reader or readers[options.format]

    @classmethod
    def from_memory(cls, data: Any, kinds: tuple[str, ...], options: ReadOptions | None = None) -> RowSource:
        """Read from Python objects: a list of rows, a tuple of columns, a mapping of columns, a DataFrame.

        Where a row is a series and nothing else, an array (T, C), a DataFrame or a list of numbers is one.
        """
        options = options or ReadOptions()
        series = _series(data, options) if kinds == ("values",) else None
        columns = [series] if series else memory_columns(data, kinds, options.columns)

        def read(files: Files) -> Iterator[Row]:
            for place, raws in enumerate(zip(*columns, strict=True)):
                yield from files.row(place + 1, raws)

        def describe(files: Files) -> str:
            return f"{counted(len(columns[0]), 'row')} of {' and '.join(kinds)}"

        return cls((Path("memory"),), options, kinds, reader=Reader(read, describe))

    @property
    def paths(self) -> tuple[Path, ...]:
        return self.files.paths

    @property
    def options(self) -> ReadOptions:
        """The options with the format that was inferred."""
        return self.files.options

    @property
    def description(self) -> str:
        """Say in one line what the source was taken for, or why it cannot be read."""
        form = self.options.format if self.options.format != "auto" else "memory"
        try:
            what = self.reader.describe(replace(self.files, counts=LineCounts(), refuse=refuse))
        except InputError as error:
            what = str(error)
        return f"{' + '.join(map(str, self.paths))}: {form}; {what}"

    def __iter__(self) -> Iterator[Row]:
        self.counts.clear()
        rows = self.reader.read(self.files)
        return _unique(rows, self.counts) if self.options.unique else rows

    def collecting(self, faults: Refuse) -> RowSource:
        """Return the same source handing its broken lines to `faults` instead of raising."""
        return RowSource(self.paths, self.options, self.kinds, reader=self.reader, on_fault=faults)


def _take_part(options: ReadOptions, names: tuple[str | Path, ...]) -> tuple[ReadOptions, tuple[Path, ...]]:
    """Turn `music.mat#train` into the path and the part."""
    name, mark, part = str(next(iter(names))).rpartition("#")
    if len(names) > 1 or not mark or not name.endswith(".mat"):
        return options, tuple(Path(name) for name in names)
    if part not in _PARTS:
        raise DataError(f"{name}: there is no part `{part}`. Name one of #train, #valid, #test.")
    return replace(options, part=part), (Path(name),)


def _unique(rows: Iterator[Row], counts: LineCounts) -> Iterator[Row]:
    """Yield the first row of each input (16 bytes kept for each)."""
    seen: set[bytes] = set()
    for row in rows:
        key = digest(row.values[0])[:16]
        if key in seen:
            counts.duplicates += 1
        else:
            seen.add(key)
            yield row


def digest(value: Any) -> bytes:
    """Return the sha256 of a raw value: the same text, words or numbers give the same, in any process."""
    if isinstance(value, np.ndarray):
        return hashlib.sha256(f"{value.shape}{value.dtype}".encode() + value.tobytes()).digest()
    text = "\x1f".join(value) if isinstance(value, list | tuple) else str(value)
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def _series(data: Any, options: ReadOptions) -> list[Any] | None:
    """Return the series of a table, an array (T, C) or a list of numbers; None for a list of series."""
    if hasattr(data, "columns"):
        return _table_series(data, options)
    one = isinstance(data, np.ndarray) and data.ndim < 3 and data.dtype != object
    return [data] if one or _is_numbers(data) else None


def _is_numbers(data: Any) -> bool:
    return isinstance(data, list) and bool(data) and all(isinstance(step, int | float) for step in data)


def _table_series(table: Any, options: ReadOptions) -> list[np.ndarray]:
    """Return the whole table as one series (T, C), or one for each name in the column `data.series`."""
    named = (options.series, options.date)
    numbers = [n for n in table.columns if n not in named and np.asarray(table[n]).dtype.kind in "iuf"]
    names = options.columns or tuple(numbers)
    if not names:
        raise DataError("The data has no column of numbers. Name some with data.columns=.")
    steps = np.stack([np.asarray(column) for column in _named_columns(table, names, names)], axis=1)
    if options.series is None:
        return [steps]
    name = (options.series,)
    marks = np.asarray(_named_columns(table, name, name)[0]).astype(str)
    return [steps[marks == mark] for mark in dict.fromkeys(marks)]


def memory_columns(data: Any, kinds: tuple[str, ...], names: tuple[str, ...] = ()) -> list[Any]:
    """Return one sequence a kind, all equally long, from any accepted shape of data."""
    if hasattr(data, "columns") or isinstance(data, Mapping):
        columns = _named_columns(data, kinds, names)
    elif isinstance(data, tuple) and len(data) == len(kinds) and all(_is_column(part) for part in data):
        columns = list(data)
    else:
        columns = _rows_to_columns(data, kinds)
    sizes = {len(column) for column in columns}
    if len(sizes) > 1:
        counts = ", ".join(str(len(column)) for column in columns)
        raise DataError(f"Columns must be equally long, but have {counts} rows.")
    if sizes in (set(), {0}):
        raise DataError("The data is empty. Give at least one row.")
    return [column.tolist() if _is_flat(column) else list(column) for column in columns]


def _is_column(part: Any) -> bool:
    return isinstance(part, list | np.ndarray) or hasattr(part, "tolist")


def _is_flat(column: Any) -> bool:
    return hasattr(column, "tolist") and getattr(column, "ndim", 1) == 1


def _named_columns(data: Any, kinds: tuple[str, ...], names: tuple[str, ...]) -> list[Any]:
    """Return the columns called `names`, by default the first ones, of a mapping or DataFrame."""
    known = list(data.columns) if hasattr(data, "columns") else list(data)
    wanted = list(names or known)[: len(kinds)]
    absent = [name for name in wanted if name not in known]
    if absent or len(wanted) < len(kinds):
        lack = f"column `{absent[0]}`" if absent else f"{counted(len(kinds), 'column')} ({', '.join(kinds)})"
        raise DataError(f"The data has no {lack}. It has: {', '.join(map(str, known))}.")
    return [data[name] for name in wanted]


def _rows_to_columns(data: Any, kinds: tuple[str, ...]) -> list[Any]:
    rows = list(data)
    if len(kinds) == 1:
        return [rows]
    for place, row in enumerate(rows):
        if isinstance(row, str) or not hasattr(row, "__len__") or len(row) < len(kinds):
            rule = f"must have {len(kinds)} values ({', '.join(kinds)})"
            raise DataError(f"Row {place + 1} {rule}, but is {repr(row)[:60]}.")
    return [[row[i] for row in rows] for i in range(len(kinds))]


def layout(paths: Sequence[str], options: ReadOptions, kinds: tuple[str, ...]) -> str | None:
    """Return the format of files as said or inferred; None if there are none, or they cannot be told."""
    if options.format != "auto" or not paths:
        return options.format if options.format != "auto" else None
    names = _take_part(options, tuple(paths))[1]
    try:
        return named_format(names) or infer_format(tuple(map(locate, names)), kinds, options.max_line)
    except (InputError, OSError):  # the files are gone, which is said where they are needed
        return None


def collect(source: Rows) -> tuple[list[Row], FaultList]:
    """Return every good row and every fault of a source."""
    faults = FaultList()
    return list(source.collecting(faults)), faults
