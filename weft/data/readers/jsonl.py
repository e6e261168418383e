"""JSONL: one JSON object (or list) a line, with text, labels, numbers, lists of words, arrays of numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from weft.core.errors import DataError, nearest
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row


def read_jsonl(files: Files) -> Iterator[Row]:
    """Yield the rows of a JSONL file."""
    columns = jsonl_columns(files)
    for line, item in _items(files):
        raws = _pick(files, line, item, columns)
        if raws is not None:
            yield from files.row(line, raws)


def _items(files: Files) -> Iterator[tuple[int, Any]]:
    for line, text in files.lines():
        if not text.strip():
            files.counts.blank += 1
            continue
        try:
            yield line, json.loads(text)
        except (ValueError, RecursionError) as error:
            reason = "nested too deeply" if isinstance(error, RecursionError) else str(error)
            files.refuse(files.path, line, f"is not JSON ({reason}). Write one object a line.")


def _pick(files: Files, line: int, item: Any, columns: tuple[str, ...]) -> tuple[Any, ...] | None:
    """Return the columns of one object, or refuse it."""
    if isinstance(item, list) and item and all(isinstance(part, dict) for part in item):
        files.refuse(files.path, line, "is one array of objects. Write one object a line: jq -c '.[]' FILE")
        return None
    if isinstance(item, list):
        item = {str(i + 1): value for i, value in enumerate(item)}
    if not isinstance(item, dict):
        files.refuse(files.path, line, f"holds {str(item)[:40]!r}, not an object. Write one object a line.")
        return None
    absent = [column for column in columns if column not in item]
    if absent:
        hint = nearest(absent[0], map(str, item))
        files.refuse(files.path, line, f"has no key `{absent[0]}`.{hint or ' It is empty.'}")
        return None
    return tuple(item[column] for column in columns)


def jsonl_columns(files: Files) -> tuple[str, ...]:
    """Return the keys to read: as told, else the first ones of the first object."""
    wanted = len(files.kinds)
    if files.options.columns:
        return _told(files, wanted)
    first = next(_items(files.quietly()), (0, {}))[1]
    keys = tuple(map(str, first if isinstance(first, dict) else range(1, len(first) + 1 if first else 1)))
    if first and len(keys) < wanted:
        raise DataError(
            f"{files.path} has the keys {', '.join(keys)}, but {wanted} are wanted ({_kinds(files)})."
        )
    return keys[:wanted]


def _told(files: Files, wanted: int) -> tuple[str, ...]:
    columns = files.options.columns
    if len(columns) < wanted:
        raise DataError(
            f"`data.columns` must name {wanted} keys ({_kinds(files)}), but is {', '.join(columns)}."
        )
    return columns[:wanted]


def _kinds(files: Files) -> str:
    return ", ".join(files.kinds)


def describe_jsonl(files: Files) -> str:
    """Say which key gives what."""
    pairs = zip(files.kinds, jsonl_columns(files), strict=False)
    return ", ".join(f"{kind} from key `{key}`" for kind, key in pairs)


readers.register("jsonl")(Reader(read_jsonl, describe_jsonl))
