"""When training ends."""

from __future__ import annotations

import time

from weft.data.feeds import Feed
from weft.training.config import TrainConfig, epochs_limit
from weft.training.cursor import Cursor
from weft.training.patience import Patience
from weft.training.signals import Signals


class Clock:
    """Seconds of training over all sittings."""

    def __init__(self) -> None:
        self._before = 0.0
        self._start = time.monotonic()

    def seconds(self) -> float:
        return self._before + time.monotonic() - self._start

    def save(self) -> float:
        return self.seconds()

    def load(self, saved: float) -> None:
        self._before, self._start = saved, time.monotonic()


class Limits:
    """Ends training at the first limit met, when patience is spent, or on a signal."""

    def __init__(
        self,
        config: TrainConfig,
        feed: Feed,
        cursor: Cursor,
        clock: Clock,
        patience: Patience,
        signals: Signals,
    ):
        self._cursor, self._clock, self._patience, self._signals = cursor, clock, patience, signals
        self._limits: dict[str, float | None] = {
            "steps": config.steps,
            "epochs": epochs_limit(config, steps_an_epoch(config, feed)),
            "tokens": config.tokens,
            "minutes": config.minutes,
        }

    def reached(self) -> str:
        """Return what ends training here ("steps", "patience", …), or "" to go on."""
        if self._signals.received is not None:
            return "signal"
        if self._patience.exhausted:
            return "patience"
        if not self._cursor.step:
            return ""  # so that every training makes at least one step
        done = self._done()
        return next((name for name, limit in self._limits.items() if limit and done[name] >= limit), "")

    def share(self, fraction_of_epoch: float) -> float:
        """Return the share of the nearest limit that is done, 0 to 1."""
        done = self._done()
        done["epochs"] += fraction_of_epoch
        return min(1.0, max(done[name] / limit for name, limit in self._limits.items() if limit))

    def _done(self) -> dict[str, float]:
        cursor = self._cursor
        return {
            "steps": cursor.step,
            "epochs": cursor.epoch,
            "tokens": cursor.tokens,
            "minutes": self._clock.seconds() / 60,
        }


def steps_an_epoch(config: TrainConfig, feed: Feed) -> int:
    """Return the steps of the first epoch."""
    return -(-feed.batches(0) // config.accumulate)


def total_steps(config: TrainConfig, feed: Feed) -> int:
    """Return the steps the limits in steps and epochs allow, epochs as long as the first; 0 for no limit."""
    steps = steps_an_epoch(config, feed)
    by_epochs = (epochs_limit(config, steps) or 0) * steps
    return min((n for n in (config.steps, by_epochs) if n), default=0)
