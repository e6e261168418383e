"""Checkpoints: when one is written, what is in it, and how training goes on from it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from weft.core.errors import ArtefactError, InputError
from weft.core.state import State
from weft.data.batches import Batch
from weft.runs import Checkpoint
from weft.training.cursor import Cursor, move
from weft.training.ema import Ema
from weft.training.health import Health
from weft.training.job import Job
from weft.training.logger import Logger
from weft.training.patience import Patience
from weft.training.precision import Precision
from weft.training.protocols import Saves
from weft.training.validator import is_due


class Keeper:
    """Saves every `every` steps (0: at the end of every epoch), at every new best, and at the end."""

    def __init__(
        self,
        job: Job,
        cursor: Cursor,
        ema: Ema,
        patience: Patience,
        logger: Logger,
        health: Health,
        parts: Mapping[str, Saves],
    ):
        self._health = health
        self._job, self._folder, self._cursor, self._ema = job, job.folder, cursor, ema
        self._patience, self._logger, self._parts = patience, logger, parts
        self._keep = max(job.config.keep, job.config.average)
        self._saved = 0  # the step last saved

    def when_due(self, improved: bool) -> None:
        """Save if it is time or the model is the best so far."""
        scheduled = is_due(self._cursor, self._job.config.checkpoint_every)
        if scheduled or improved:
            self._save(scheduled)
            self.point_best(improved)
            self._folder.retain(self._keep)

    def at_end(self) -> str:
        """Save unless just done; return the name of the last checkpoint."""
        if self._saved != self._cursor.step:
            self._save(scheduled=False)
        last = self._folder.pointed("last")
        return last.name if last else "nothing, as no step was made"

    def point_best(self, improved: bool, checkpoint: Checkpoint | None = None) -> None:
        """Let `best` mean a checkpoint (the last by default) if it is."""
        if improved:
            self._folder.point("best", checkpoint or self._folder.pointed("last"))

    def begin(self) -> None:
        """Refuse a folder in which something was trained before."""
        if self._folder.checkpoints() or self._folder.metrics.rows:
            raise InputError(
                f"A new training needs a new folder, but {self._folder} holds one already. "
                f"Choose another `run=`, or continue it with `weft train --resume {self._folder}`."
            )

    def restore(self, precision: Precision) -> None:
        """Go on from the newest whole checkpoint; begin anew where there is none."""
        self._folder.clear_leftovers()
        checkpoint = self._folder.newest(lambda line: self._logger.event("warning", line))
        if checkpoint is None:
            self._folder.metrics.cut(0)
            return
        with _fitting(checkpoint):
            saved = checkpoint.state()
            self._cursor.load(saved["cursor"], lambda batch: self._probe(precision, batch))
            self._job.model.load_state_dict(checkpoint.weights())
            self._ema.load(saved["ema"])
            for name, part in self._parts.items():
                part.load(saved[name])
        self._put_back(saved["rows"])
        self._logger.event("resume", f"resumed from {checkpoint.name}")

    def _save(self, scheduled: bool) -> None:
        self._health.check_weights(self._cursor)
        step = self._cursor.step
        state = {name: part.save() for name, part in self._parts.items()}
        state |= {"cursor": self._cursor.save(), "ema": self._ema.save(), "rows": self._folder.metrics.rows}
        checkpoint = self._folder.save(step, self._ema.state_dict(), state, scheduled)
        self._saved = step
        self._logger.event("checkpoint", f"saved {checkpoint.name}", path=str(checkpoint.path))

    def _put_back(self, rows: int) -> None:
        """Make the folder as it was when the checkpoint was written."""
        step = self._saved = self._cursor.step
        missing = self._folder.metrics.cut(rows)
        if missing:
            self._logger.event("warning", f"metrics.jsonl lost {missing} rows from before step {step}.")
        self._folder.set_aside_after(step)
        steps = {checkpoint.step: checkpoint for checkpoint in self._folder.checkpoints()}
        self._folder.point("last", steps[step])
        self._folder.point("best", steps.get(self._patience.best_step))

    def _probe(self, precision: Precision, batch: Batch) -> State:
        """Return a state nested as this model nests it, by one forward pass whose effects are loaded over."""
        job = self._job
        with torch.no_grad(), precision.autocast():
            return job.task.loss(job.model, move(batch, job.device), None, 0.0).state


@contextmanager
def _fitting(checkpoint: Checkpoint) -> Iterator[None]:
    """Say in one line that a whole checkpoint is not one of this model and configuration."""
    try:
        yield
    except (RuntimeError, ValueError, KeyError, TypeError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ArtefactError(
            f"{checkpoint.path} does not fit the model that config.yaml builds: {reason}"
        ) from error
