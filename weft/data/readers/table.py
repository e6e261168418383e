"""Tables: one line a row, columns between tabs (tsv) or between commas with quotes (csv)."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from weft.core.errors import ConfigError, DataError, nearest
from weft.data.readers.cells import number
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row, counted

LOOK = 20  # records looked at to infer a layout
_SPOKEN = {"\\t": "\t", "tab": "\t", "comma": ",", "semicolon": ";", "space": " "}
_USUAL = """
id text sentence review document source src target tgt trg input output label labels class category tag tags
sentiment title summary dialogue question answer value score name language sequence seq premise hypothesis
sentence1 sentence2 word words date x y en de fr es it pt nl pl ru zh ja english german french spanish
"""
_HEADER_WORDS = frozenset(_USUAL.split())

Record = tuple[int, list[str]]  # number of its first line, its cells


@dataclass(frozen=True)
class Layout:
    """Which lines and columns of a table are read."""

    names: tuple[str, ...] | None  # the header's cells
    picks: tuple[int, ...]  # 0-based, in the order of the kinds
    width: int
    first: int  # number of the line the width was taken from


def read_table(files: Files) -> Iterator[Row]:
    """Yield the rows of a table."""
    layout = table_layout(files)
    for line, cells in body(files, layout):
        yield from files.row(line, tuple(cells[pick] for pick in layout.picks))


def body(files: Files, layout: Layout) -> Iterator[Record]:
    """Yield the records below the header that have the table's width."""
    skip = layout.names is not None
    for line, cells in records(files):
        if skip:
            skip = False
        elif len(cells) == layout.width:
            yield line, cells
        elif not any(cell.strip() for cell in cells):
            files.counts.blank += 1
        else:
            files.refuse(files.path, line, _ragged(len(cells), layout))


def _ragged(count: int, layout: Layout) -> str:
    rule = f"line {layout.first} has {layout.width}"
    return f"has {counted(count, 'column')}, but {rule}. Mend the line, or name data.delimiter=."


def records(files: Files) -> Iterator[Record]:
    """Yield the cells of each line (of each quoted record, which may span lines)."""
    mark = delimiter(files)
    if files.options.format == "csv":
        return _quoted(files, mark)
    return ((line, text.split(mark)) for line, text in files.lines())


def delimiter(files: Files) -> str:
    """Return what stands between columns: as told, else a tab (tsv), a comma or plain semicolon (csv)."""
    told = files.options.delimiter
    if told is not None:
        return _told_delimiter(_SPOKEN.get(told, told), files.options.format)
    if files.options.format != "csv":
        return "\t"
    first = next((text for _, text in files.quietly().lines() if text.strip()), "")
    return ";" if ";" in first and "," not in first else ","


def _told_delimiter(mark: str, form: str) -> str:
    if not mark or (form == "csv" and (len(mark) != 1 or mark in '"\r\n')):
        raise ConfigError(
            f"`data.delimiter` must be one character, but is {mark!r}. Try comma, tab or semicolon."
        )
    return mark


def _quoted(files: Files, mark: str) -> Iterator[Record]:
    fed: list[int] = []  # the lines of the record in hand

    def feed() -> Iterator[str]:
        for line, text in files.lines():
            fed.append(line)
            yield text + "\n"

    csv.field_size_limit(max(csv.field_size_limit(), files.options.max_line))
    table = csv.reader(feed(), delimiter=mark, strict=True)
    while True:
        fed.clear()
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            files.refuse(files.path, fed[0], _csv_fault(error))
        else:
            yield fed[0], cells


def _csv_fault(error: csv.Error) -> str:
    if "unexpected end" in str(error) or "field limit" in str(error):
        return "opens a quote that is never closed. Close it, or double a quote that is meant as text."
    return f"is not CSV ({error}). Double a quote that is meant as text."


def table_layout(files: Files, needed: int | None = None) -> Layout:
    """Infer header and columns from the first records; `needed` columns default to one a kind."""
    look = [record for record in islice(records(files.quietly()), LOOK) if any(map(str.strip, record[1]))]
    if not look:
        for _ in records(files):  # says what is wrong with the lines, or that there is none
            pass
        raise DataError(f"{files.path} has no readable line among its first {LOOK}. Mend them.")
    first, cells = look[0]
    named = has_header(files, cells, [row for _, row in look[1:]])
    names = tuple(cell.strip() for cell in cells) if named else None
    count = len(files.kinds) if needed is None else needed
    picks = pick_columns(files, names, len(cells), count)
    return Layout(names, picks, len(cells), first)


def has_header(files: Files, first: list[str], rest: list[list[str]]) -> bool:
    """Tell whether the first record names the columns: told, or unmistakable."""
    told = str(files.options.header).lower()
    if told != "auto":
        return told == "true"
    cells = [cell.strip() for cell in first]
    if any(not column.isdecimal() for column in files.options.columns):
        return True  # columns are asked for by name
    if len(set(cells)) == len(cells) and all(cell.lower() in _HEADER_WORDS for cell in cells):
        return True
    return _words_over_numbers(files, cells, rest)


def _words_over_numbers(files: Files, first: Iterable[str], rest: list[list[str]]) -> bool:
    """Tell whether some column begins with a word over numbers: over three where numbers are not wanted."""
    enough = 1 if {"value", "values"} & set(files.kinds) else 3
    columns = zip(first, *(row for row in rest if len(row) == len(rest[0])), strict=False)
    return any(_is_heading(head, tail, enough, files) for head, *tail in columns)


def _is_heading(head: str, tail: list[str], enough: int, files: Files) -> bool:
    filled = [cell for cell in tail if cell.strip()]
    numbers = len(filled) >= enough and all(is_number(cell, files) for cell in filled)
    return numbers and bool(head) and not is_number(head, files)


def is_number(cell: str, files: Files) -> bool:
    """Tell whether a cell reads as a number, or as a missing one, declared or not."""
    try:
        number(cell, (*files.options.missing, "NaN"))
    except ValueError:
        return False
    return True


def pick_columns(files: Files, names: tuple[str, ...] | None, width: int, count: int) -> tuple[int, ...]:
    """Return the places of the columns asked for, by default the first `count`."""
    columns = files.options.columns or tuple(str(i + 1) for i in range(count))
    if len(columns) < count:
        wanted, given = ", ".join(files.kinds), ", ".join(columns)
        raise ConfigError(f"`data.columns` must name {counted(count, 'column')} ({wanted}), but is {given}.")
    return tuple(find_column(files, column, names, width) for column in columns[:count])


def find_column(files: Files, column: str, names: tuple[str, ...] | None, width: int) -> int:
    """Return the 0-based place of a column given by name or 1-based number."""
    if names and column in names:
        if names.count(column) > 1:
            raise DataError(f"{files.path} has two columns `{column}`. Name them by number in data.columns=.")
        return names.index(column)
    if column.isdecimal() and 1 <= int(column) <= width:
        return int(column) - 1
    if column.isdecimal():
        has = counted(width, "column")
        way_out = "Name data.columns= or data.delimiter=."
        raise DataError(f"{files.path} has {has}, but column {column} is wanted. {way_out}")
    if names is None:
        rule = f"`data.columns` names `{column}`, but {files.path} has no header"
        raise ConfigError(f"{rule}. Use numbers from 1.")
    raise DataError(f"{files.path} has no column `{column}`.{nearest(column, names)}")


def describe_table(files: Files) -> str:
    """Say which header, delimiter and columns were found."""
    layout = table_layout(files)
    header = f"header {', '.join(layout.names)}" if layout.names else "no header"
    wanted = [_column_name(layout, pick, kind) for pick, kind in zip(layout.picks, files.kinds, strict=True)]
    return f"{header}; {_spoken_mark(files)}{counted(layout.width, 'column')}; {', '.join(wanted)}"


def _column_name(layout: Layout, pick: int, kind: str) -> str:
    name = f" ({layout.names[pick]})" if layout.names else ""
    return f"{kind} from column {pick + 1}{name}"


def _spoken_mark(files: Files) -> str:
    mark: Any = delimiter(files)
    return "" if mark in "\t," else f"columns between {mark!r}; "


for _form in ("tsv", "csv"):
    readers.register(_form)(Reader(read_table, describe_table))
