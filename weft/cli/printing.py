"""Printing for people and for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any


def tell(line: str) -> None:
    """Say something beside the result: on stderr, at once."""
    print(line, file=sys.stderr, flush=True)


def print_json(values: Any) -> None:
    """Print plain data as JSON; what JSON has no word for is written as text."""
    print(json.dumps(values, indent=2, ensure_ascii=False, default=str))


def print_pairs(title: str, pairs: Mapping[str, Any]) -> None:
    """Print a title and its facts, one a line."""
    width = max(map(len, pairs), default=0)
    print(title)
    for name, value in pairs.items():
        print(f"  {name:<{width}}  {value}")


def print_table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows under a header, columns aligned, numbers to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [all(isinstance(row[i], int | float) for row in rows) for i in range(len(header))]
    for row in [list(header), *cells]:
        line = [c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True)]
        print("  ".join(line).rstrip())
