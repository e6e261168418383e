"""Numeric series in a table: one time step a line, with an optional column of dates and of series names."""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from typing import Any

import numpy as np

from weft.core.errors import DataError
from weft.data.readers.cells import number
from weft.data.readers.registry import Files, Reader, readers
from weft.data.readers.table import LOOK, Layout, body, find_column, is_number, table_layout
from weft.data.rows import Row


@dataclass(frozen=True)
class SeriesLayout:
    """Which columns of a table are dates, series names and channels."""

    table: Layout
    date: int | None
    series: int | None
    channels: tuple[int, ...]


@dataclass
class _Series:
    """One series while it is read: its numbers end to end, 8 bytes each."""

    first: int
    last_date: datetime | None = None
    numbers: array[float] = field(default_factory=lambda: array("d"))


def read_series(files: Files) -> Iterator[Row]:
    """Yield one row (T, C) a series: the whole file, or one for each name in the column `data.series`."""
    files = _table(files)
    layout = series_layout(files)
    found: dict[str, _Series] = {}
    for line, cells in body(files, layout.table):
        name = "" if layout.series is None else cells[layout.series]
        _add(files, layout, found.setdefault(name, _Series(line)), line, cells)
    for series in found.values():
        steps = np.array(series.numbers, dtype=np.float64).reshape(-1, len(layout.channels))
        yield from files.row(series.first, (steps,))


def _table(files: Files) -> Files:
    """Read the file as CSV, or as TSV where that is its name or a tab stands in its first line."""
    if files.kinds != ("values",):
        raise DataError(f"{files.path}: a series gives values, but {', '.join(files.kinds)} are wanted.")
    first = next((text for _, text in files.quietly().lines() if text.strip()), "")
    form = "tsv" if "\t" in first and files.options.delimiter is None else "csv"
    return replace(files, options=replace(files.options, format=form))


def _add(files: Files, layout: SeriesLayout, series: _Series, line: int, cells: list[str]) -> None:
    """Append one step, or refuse it."""
    try:
        if layout.date is not None:
            series.last_date = _later(cells[layout.date], series.last_date)
        series.numbers.extend([number(cells[place], files.options.missing) for place in layout.channels])
    except ValueError as error:
        files.refuse(files.path, line, str(error))


def _later(cell: str, last: datetime | None) -> datetime | None:
    """Read a date and hold it against the one before; a spelling other than ISO is not checked."""
    try:
        date = datetime.fromisoformat(cell.strip())
    except ValueError:
        return last
    if last is not None and (date.tzinfo is None) == (last.tzinfo is None) and date < last:
        raise ValueError(f"goes back in time, from {last} to {date}. Sort the lines by date.")
    return date


def series_layout(files: Files) -> SeriesLayout:
    """Infer which columns are dates, names and channels."""
    options = replace(files.options, columns=())
    table = table_layout(_with_header(files, options), needed=0)
    series = _named(files, files.options.series, table)
    date = _named(files, files.options.date, table)
    if date is None:
        date = _find_date(files, table, series)
    channels = tuple(find_column(files, name, table.names, table.width) for name in files.options.columns)
    channels = channels or tuple(i for i in range(table.width) if i not in (date, series))
    if not channels:
        raise DataError(f"{files.path} has no column of numbers. Name some with data.columns=.")
    return SeriesLayout(table, date, series, channels)


def _with_header(files: Files, options: Any) -> Files:
    """Return the files with their header settled: columns called by name need one."""
    asked = [*files.options.columns, files.options.date or "1", files.options.series or "1"]
    by_name = options.header == "auto" and any(not name.isdecimal() for name in asked)
    return replace(files, options=replace(options, header="true") if by_name else options)


def _named(files: Files, name: str | None, table: Layout) -> int | None:
    return None if name is None else find_column(files, name, table.names, table.width)


def _find_date(files: Files, table: Layout, series: int | None) -> int | None:
    """Return the first column where it reads as dates and not as numbers."""
    firsts = [cells[0] for _, cells in islice(body(files.quietly(), table), LOOK)]
    return 0 if firsts and series != 0 and not any(is_number(cell, files) for cell in firsts) else None


def describe_series(files: Files) -> str:
    """Say which columns are dates, names and channels."""
    files = _table(files)
    layout = series_layout(files)
    names = layout.table.names or tuple(f"column {i + 1}" for i in range(layout.table.width))
    parts = ["header" if layout.table.names else "no header"]
    parts += [f"dates from {names[layout.date]}"] if layout.date is not None else []
    parts += [f"one series for each {names[layout.series]}"] if layout.series is not None else []
    shown = ", ".join(names[place] for place in layout.channels[:10])
    return "; ".join([*parts, f"{len(layout.channels)} channels: {shown}"])


readers.register("series")(Reader(read_series, describe_series))
