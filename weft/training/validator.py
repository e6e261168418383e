"""Measures the model on validation data, and tells who listens."""

from __future__ import annotations

from typing import Any

import torch

from weft.training.cursor import Cursor
from weft.training.ema import Ema
from weft.training.health import Health
from weft.training.job import Job
from weft.training.logger import Logger
from weft.training.patience import Patience
from weft.training.schedules import Schedule


class Validator:
    """Validates every `every` steps (0: at the end of every epoch), with the averaged weights if kept."""

    def __init__(
        self,
        job: Job,
        cursor: Cursor,
        ema: Ema,
        patience: Patience,
        schedule: Schedule,
        logger: Logger,
        health: Health,
    ):
        self._job, self._cursor, self._ema, self._health = job, cursor, ema, health
        self._patience, self._schedule, self._logger = patience, schedule, logger
        self._validated = 0  # the step last validated
        self._warned = False  # that the metric is undefined

    def when_due(self) -> bool:
        """Validate if it is time; return whether the model is the best so far."""
        if self._job.valid is None or not is_due(self._cursor, self._job.config.validate_every):
            return False
        values = self.measure()
        improved = self._patience.observe(values, self._cursor.step)
        if not self._patience.undefined(values):
            self._schedule.observe(improved)
        return improved

    def at_end(self) -> bool:
        """Validate the last weights unless it was just done; return whether they are the best."""
        if self._job.valid is None or self._validated == self._cursor.step:
            return False
        return self._note(self.measure())

    def average(self, weights: dict[str, Any]) -> bool:
        """Validate averaged weights, which the model then bears; return whether they are the best."""
        self._job.model.load_state_dict(weights)
        if self._job.valid is None:
            return True
        values = _validate(self._job)
        self._logger.validation({**values, "averaged": True})
        return self._note(values)

    def measure(self) -> dict[str, float]:
        """Validate and log; refuse weights gone bad. Training's chance is left as it was."""
        self._health.check_weights(self._cursor)
        decisive = ("loss", self._patience.metric)
        with self._ema.applied():
            values = self._health.validate(lambda: _validate(self._job), decisive, self._cursor)
        self._logger.validation(values)
        if self._patience.undefined(values):
            self._warn()
        self._validated = self._cursor.step
        return values

    def _warn(self) -> None:
        """Say once in a sitting that there is nothing to judge by, and why."""
        if not self._warned:
            self._logger.event(
                "warning",
                f"`{self._patience.metric}` of the validation data is undefined: no item of them can be "
                "scored, as where training saw none of their labels. It decides neither what is best nor "
                "when patience ends. Look at `data.valid`.",
            )
        self._warned = True

    def _note(self, values: dict[str, float]) -> bool:
        return self._patience.improves(values) and self._patience.observe(values, self._cursor.step)

    def save(self) -> int:
        return self._validated

    def load(self, saved: int) -> None:
        self._validated = saved


def is_due(cursor: Cursor, every: int) -> bool:
    """Tell whether the step just made is one of every `every`, or with 0 the last of an epoch."""
    return cursor.step % every == 0 if every else cursor.position == 0


def _validate(job: Job) -> dict[str, float]:
    model = job.model
    devices = {p.device for p in model.parameters() if p.device.type == "cuda"}
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), torch.random.fork_rng(devices=list(devices)):
            return {name: float(value) for name, value in job.task.validate(model, job.valid).items()}
    finally:
        model.train(training)
