"""The progress line: live on a terminal, one plain line at every log elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import IO, Any, Protocol, cast

from weft.data.feeds import Feed
from weft.training.cursor import Cursor
from weft.training.limits import Limits

_REDRAW = 0.25  # seconds between two drawings of the live line
_COUNTS = ("step", "epoch", "tokens")


class Stream(Protocol):
    """Where lines go: stderr, as a rule."""

    def write(self, text: str, /) -> object: ...

    def flush(self) -> object: ...

    def isatty(self) -> bool: ...


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
        self._drawn = 0.0

    def start(self) -> None:
        """Begin to measure and to draw."""
        self._meter.restart()
        if self._live:
            self._live.start()

    def stop(self) -> None:
        """Leave the terminal as it was."""
        if self._live:
            self._live.stop()

    def step(self, cursor: Cursor) -> None:
        """Redraw the live line, a few times a second at most."""
        if self._live and time.monotonic() - self._drawn > _REDRAW:
            self._drawn = time.monotonic()
            self._live.draw(self._meter.share(), self._pace())

    def row(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        line = describe(row)
        if self._live:
            self._live.note(line)
        else:
            self.say(f"{line}  {self._pace()}" if row["split"] == "train" else line)

    def say(self, line: str) -> None:
        """Print a line."""
        if self._live:
            self._live.print(line)
        elif self._stream is not None:
            print(line, file=self._stream, flush=True)

    def _pace(self) -> str:
        steps, tokens = self._meter.rates()
        return f"{steps:.3g} steps/s  {tokens:,.0f} tokens/s  {duration(self._meter.left())} left"


class _Live:
    """One line that is drawn over itself."""

    def __init__(self, stream: Stream):
        from rich.console import Console
        from rich.progress import BarColumn, TaskProgressColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TextColumn("{task.fields[pace]}"),
        )
        self._bar = Bar(
            *columns, console=Console(file=cast("IO[str]", stream)), auto_refresh=False, transient=True
        )
        self._line = self._bar.add_task("training", total=1.0, pace="")
        self.start, self.stop = self._bar.start, self._bar.stop

    def draw(self, share: float, pace: str) -> None:
        self._bar.update(self._line, completed=share, pace=pace, refresh=True)

    def note(self, line: str) -> None:
        self._bar.update(self._line, description=line, refresh=True)

    def print(self, line: str) -> None:
        self._bar.console.print(line, markup=False, highlight=False)


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
