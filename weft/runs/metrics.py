"""metrics.jsonl: one JSON object a line, appended while training, cut back on resume.

What training writes into it:

| key             | in rows of     | meaning                                                       |
|-----------------|----------------|---------------------------------------------------------------|
| `step`          | train, valid   | optimizer steps made so far                                   |
| `epoch`         | train, valid   | the epoch that step belonged to, counted from 1               |
| `split`         | train, valid   | "train" or "valid"                                            |
| `loss`          | train          | mean loss per counted element since the last train row        |
| `lr`            | train          | learning rate of that step                                    |
| `gradient_norm` | train          | mean global norm before clipping since the last train row     |
| `clipped`       | train          | share of the steps since the last train row that were clipped |
| `tokens`        | train          | target elements trained on so far                             |
| any metric name | valid          | what the task's validation measured                           |
| `averaged`      | valid          | true where the mean of several checkpoints was validated      |
| `seconds`       | train, valid   | training time so far over all sittings; alone not repeatable  |

A value that is no finite number is written as null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from weft.core.errors import ArtefactError
from weft.runs.storage import room_for, sync


class MetricsFile:
    """An append-only file of rows that knows how many it holds."""

    def __init__(self, path: Path):
        self.path = path
        self.rows = len(_complete_lines(path))

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row; it is the system's, safe from a kill, when this returns."""
        line = json.dumps({key: _finite(value) for key, value in row.items()}, ensure_ascii=False) + "\n"
        with room_for(len(line.encode()), "the next row of metrics.jsonl", self.path.parent):
            _append(self.path, line)
        self.rows += 1

    def cut(self, rows: int) -> int:
        """Keep the first `rows` rows, nothing of a half-written line; return how many of them are missing."""
        lines = _complete_lines(self.path)[:rows]
        if self.path.exists():
            with open(self.path, "rb+") as file:
                file.truncate(sum(map(len, lines)))
        self.rows = len(lines)
        return rows - self.rows

    def sync(self) -> None:
        """Make every row written so far durable."""
        if self.path.exists():
            with open(self.path, "rb+") as file:
                sync(file)

    def read(self) -> list[dict[str, Any]]:
        """Return the rows."""
        return [self._row(place, line) for place, line in enumerate(_complete_lines(self.path), start=1)]

    def _row(self, place: int, line: bytes) -> dict[str, Any]:
        try:
            return json.loads(line)
        except ValueError:
            raise ArtefactError(f"{self.path}, line {place} is damaged: it is not JSON. Delete it.") from None


def _append(path: Path, line: str) -> None:
    with open(path, "a", encoding="utf-8", newline="\n") as file:
        file.write(line)


def _complete_lines(path: Path) -> list[bytes]:
    if not path.exists():
        return []
    return [line for line in path.read_bytes().splitlines(keepends=True) if line.endswith(b"\n")]


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
