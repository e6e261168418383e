"""The progress line: live on a terminal, one plain line at every log elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import Any, Protocol

from weft.data.feeds import Feed
from weft.training.cursor import Cursor
from weft.training.limits import Limits

_REDRAW = 0.25  # seconds between two drawings of the live line
_COLUMNS = 80  # of a terminal that does not tell
_COUNTS = ("step", "epoch", "tokens")


class Stream(Protocol):
    """Where lines go: stderr, as a rule."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...

    def fileno(self) -> int: ...


def describe(row: Mapping[str, Any]) -> str:
    """Return a row of metrics as a line for people."""
    head = f"step {row['step']}  epoch {row['epoch']}  {row['split']}"
    values = {name: value for name, value in row.items() if name not in (*_COUNTS, "split", "seconds")}
    return "  ".join([head, *(f"{name} {_number(value)}" for name, value in values.items())])


def duration(seconds: float) -> str:
    """Return seconds as 1:02:03, or 2:03 under an hour."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


class Meter:
    """Measures the rate and the time left of this sitting."""

    def __init__(self, feed: Feed, limits: Limits, cursor: Cursor):
        self._feed, self._limits, self._cursor = feed, limits, cursor
        self._start: tuple[float, float] | None = None
        self._mark = (time.monotonic(), cursor.step, cursor.tokens)

    def restart(self) -> None:
        """Begin to measure here."""
        self._start = (time.monotonic(), self.share())
        self._mark = (self._start[0], self._cursor.step, self._cursor.tokens)

    def share(self) -> float:
        """Return the share of the whole training that is done."""
        batches = self._feed.batches(self._cursor.epoch)
        return self._limits.share(self._cursor.position / max(batches, 1))

    def rates(self) -> tuple[float, float]:
        """Return steps and tokens a second since the last call."""
        time_then, step, tokens = self._mark
        self._mark = (time.monotonic(), self._cursor.step, self._cursor.tokens)
        elapsed = max(self._mark[0] - time_then, 1e-9)
        return (self._mark[1] - step) / elapsed, (self._mark[2] - tokens) / elapsed

    def left(self) -> float:
        """Return the seconds this sitting will still take at its rate so far."""
        start, share_then = self._start or (time.monotonic(), 0.0)
        share = self.share()
        return (time.monotonic() - start) * (1 - share) / max(share - share_then, 1e-9)


class Progress:
    """Shows training on a stream; without a stream it is silent."""

    def __init__(self, stream: Stream | None, meter: Meter):
        self._stream, self._meter = stream, meter
        self._live = _Live(stream) if stream is not None and stream.isatty() else None
        self._drawn, self._loss = 0.0, ""

    def start(self) -> None:
        """Begin to measure."""
        self._meter.restart()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            self._live.clear()

    def step(self, cursor: Cursor) -> None:
        """Redraw the live line, a few times a second at most; what matters most is cut last."""
        if self._live and time.monotonic() - self._drawn > _REDRAW:
            self._drawn = time.monotonic()
            place = f"{self._meter.share():4.0%}  {self._left()}  step {cursor.step:,}"
            self._live.draw(f"{place}{self._loss}  {self._pace()}")

    def row(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics: a line, or in training on a terminal a part of the live one."""
        if row["split"] != "train":
            self.say(describe(row))
        elif self._live:
            self._loss = f"  loss {_number(row['loss'])}"
        else:
            self.say(f"{describe(row)}  {self._pace()}  {self._left()}")

    def say(self, line: str) -> None:
        """Print a line."""
        if self._live:
            self._live.clear()
        if self._stream is not None:
            print(line, file=self._stream, flush=True)

    def _left(self) -> str:
        return f"{duration(self._meter.left())} left"

    def _pace(self) -> str:
        steps, tokens = self._meter.rates()
        return f"{steps:.3g} steps/s  {tokens:,.0f} tokens/s"


class _Live:
    """One line drawn over itself with blanks and carriage returns, which every terminal knows."""

    def __init__(self, stream: Stream):
        self._stream, self._length = stream, 0

    def draw(self, text: str) -> None:
        text = text[: _columns(self._stream) - len("^C") - 1]  # a line that wraps cannot be drawn over
        self._write(text.ljust(self._length))
        self._length = len(text)

    def clear(self) -> None:
        if self._length:
            self._write(" " * (self._length + len("^C")) + "\r")
            self._length = 0

    def _write(self, text: str) -> None:
        self._stream.write(f"\r{text}")
        self._stream.flush()


def _columns(stream: Stream) -> int:
    try:
        return os.get_terminal_size(stream.fileno()).columns or _COLUMNS
    except OSError:
        return _COLUMNS


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
