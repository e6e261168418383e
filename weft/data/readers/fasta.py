"""FASTA: `>header` then the residues; the header holds the label or the value."""

from __future__ import annotations

import re
from collections.abc import Iterator

from weft.core.errors import DataError
from weft.data.readers.registry import TARGETS, Files, Reader, readers
from weft.data.rows import Row

_BETWEEN = re.compile(r"[\s|]+")


def read_fasta(files: Files) -> Iterator[Row]:
    """Yield (sequence, label or value) of each record."""
    files.need_kinds("fasta", ("text", "label", "value"))
    labelled = any(kind in TARGETS for kind in files.kinds)
    for line, header, sequence in _entries(files):
        target = _target(files, line, header) if labelled else ""
        if target is not None:
            yield from files.row(line, files.place(sequence, target))


def _entries(files: Files) -> Iterator[tuple[int, str, str]]:
    """Yield (line of the header, header, residues) of each record."""
    start, header, parts = 0, "", []
    for line, text in files.lines():
        if text.startswith(">"):
            if start:
                yield start, header, "".join(parts)
            start, header, parts = line, text[1:].strip(), []
        elif start:
            parts.append("".join(text.split()))
        elif text.strip():
            files.refuse(files.path, line, "stands before the first `>` line. FASTA begins with a header.")
    if start:
        yield start, header, "".join(parts)


def _target(files: Files, line: int, header: str) -> str | None:
    """Return the header's last word, or the one `data.columns` names: KEY of KEY=value, or its number."""
    fields = _BETWEEN.split(header)
    column = _column(files)
    if column is None:
        found = fields[-1] if len(fields) > 1 else None
    elif column.isdecimal():
        found = fields[int(column) - 1] if 1 <= int(column) <= len(fields) else None
    else:
        found = next((f.partition("=")[2] for f in fields if f.startswith(f"{column}=")), None)
    if not found:
        wanted = f"field `{column}`" if column else "label after the name"
        files.refuse(
            files.path, line, f"has a header without a {wanted}. Write `>name label`, or name data.columns=."
        )
    return found or None


def _column(files: Files) -> str | None:
    columns = files.options.columns
    if len(columns) > 2:
        raise DataError(
            f"{files.path}: FASTA has one column to name (where the label is), but {columns} are named."
        )
    return columns[-1] if columns else None


def describe_fasta(files: Files) -> str:
    """Say where the label is taken from."""
    if not any(kind in TARGETS for kind in files.kinds):
        return "one sequence a record"
    column = _column(files)
    place = f"field `{column}`" if column else "last word"
    return f"one sequence a record, {files.kinds[-1]} from the header's {place}"


readers.register("fasta")(Reader(read_fasta, describe_fasta))
