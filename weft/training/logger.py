"""Says how training goes: metrics.jsonl, log.txt, TensorBoard, the progress line, the caller.

The keys of metrics.jsonl are documented in weft/runs/metrics.py.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from weft.training.clipping import Reading
from weft.training.cursor import Cursor
from weft.training.job import Job
from weft.training.limits import Clock
from weft.training.progress import Progress, describe
from weft.training.tensorboard import Board

OnEvent = Callable[[str, dict[str, Any]], object]
_EMPTY = {"loss": 0.0, "count": 0.0, "norm": 0.0, "clipped": 0, "steps": 0}


class Logger:
    """Sums what steps measure and tells it every `every` steps; tells validations and events at once.

    The first step has a row of its own: what an untrained model is at, and a curve however short.

    Events for the caller: "train" and "valid" with the row, "checkpoint", "resume", "warning", "done".
    """

    def __init__(
        self,
        job: Job,
        cursor: Cursor,
        clock: Clock,
        progress: Progress,
        board: Board,
        on_event: OnEvent | None,
    ):
        self._folder, self._every = job.folder, job.config.log_every
        self._cursor, self._clock, self._progress, self._board = cursor, clock, progress, board
        self._on_event = on_event or (lambda name, values: None)
        self._sums: dict[str, float] = dict(_EMPTY)
        self._rate = 0.0

    def step(self, reading: Reading, rate: float) -> None:
        """Take note of one step, and write the row since the last one when it is due."""
        sums, self._rate = self._sums, rate
        sums["loss"] += reading.loss
        sums["count"] += reading.count
        sums["norm"] += reading.norm if math.isfinite(reading.norm) else 0.0  # fp16 left that step out
        sums["clipped"] += reading.clipped
        sums["steps"] += 1
        self._progress.step(self._cursor)
        if self._cursor.step == 1 or self._cursor.step % self._every == 0:
            self.flush()

    def flush(self) -> None:
        """Write the row of the steps since the last one, if there are any."""
        sums, self._sums = self._sums, dict(_EMPTY)
        if sums["steps"]:
            row = {
                "loss": sums["loss"] / max(sums["count"], 1.0),
                "lr": self._rate,
                "gradient_norm": sums["norm"] / sums["steps"],
                "clipped": sums["clipped"] / sums["steps"],
                "tokens": self._cursor.tokens,
            }
            self._write("train", row)

    def validation(self, values: Mapping[str, float]) -> None:
        """Write the row of a validation."""
        self._write("valid", values)

    def event(self, name: str, message: str, **values: Any) -> None:
        """Tell the caller and log.txt of something that happened once."""
        self._folder.log(f"step {self._cursor.step}  {message}")
        self._progress.say(message)
        self._on_event(name, {"step": self._cursor.step, "message": message, **values})

    def _write(self, split: str, values: Mapping[str, Any]) -> None:
        where = {"step": self._cursor.step, "epoch": self._cursor.epoch_of_step, "split": split}
        row = {**where, **values, "seconds": round(self._clock.seconds(), 3)}
        self._folder.metrics.append(row)
        self._folder.log(describe(row))
        self._board.write(row)
        self._progress.row(row)
        self._on_event(split, row)

    def save(self) -> dict[str, Any]:
        return {**self._sums, "rate": self._rate}

    def load(self, saved: dict[str, Any]) -> None:
        self._sums = {name: saved[name] for name in _EMPTY}
        self._rate = saved["rate"]
