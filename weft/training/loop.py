"""The training loop."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

from torch import nn

from weft.data.feeds import Feed
from weft.runs import RunFolder
from weft.training.chance import Chance
from weft.training.clipping import Clipper
from weft.training.config import TrainConfig, check
from weft.training.cursor import Cursor, Tally, move
from weft.training.ema import Ema
from weft.training.health import Health
from weft.training.job import Job
from weft.training.keeper import Keeper
from weft.training.limits import Clock, Limits, total_steps
from weft.training.logger import Logger, OnEvent
from weft.training.optimizers import Memory, build_optimizer, trained
from weft.training.patience import Patience
from weft.training.precision import Precision
from weft.training.progress import Meter, Progress, Stream
from weft.training.protocols import Saves, Task
from weft.training.schedules import Schedule
from weft.training.signals import Signals
from weft.training.tensorboard import Board
from weft.training.validator import Validator


@dataclass(frozen=True)
class Outcome:
    """What came of a training."""

    step: int
    epoch: int
    reason: str  # the limit that ended it: steps, epochs, tokens, minutes, patience
    best_step: int  # of the weights kept as best: the last where no validation decided
    best: dict[str, float]  # empty where no validation decided
    seconds: float


class Training:
    """The parts the loop calls by name."""

    def __init__(self, job: Job, signals: Signals, on_event: OnEvent | None, stream: Stream | None):
        config = job.config
        self.job, self.signals = job, signals
        self.optimizer = build_optimizer(job.model, config)
        self.precision = Precision(config.precision, job.device)
        self.clipper = Clipper(config.clip)
        self.schedule = Schedule(config, total_steps(config, job.feed))
        self.ema = Ema(job.model, config.ema)
        self.health = Health(job, self.precision)
        self.cursor = Cursor(job.feed, config.accumulate)
        self.clock = Clock()
        self.patience = Patience(config.metric, job.task.better, config.patience)
        self.limits = Limits(config, job.feed, self.cursor, self.clock, self.patience, signals)
        self.progress = Progress(stream, Meter(job.feed, self.limits, self.cursor))
        self.board = Board(job.folder.path / "tensorboard" if config.tensorboard else None)
        self.logger = Logger(job, self.cursor, self.clock, self.progress, self.board, on_event)
        self.validator = Validator(
            job, self.cursor, self.ema, self.patience, self.schedule, self.logger, self.health
        )
        self.keeper = Keeper(
            job, self.cursor, self.ema, self.patience, self.logger, self.health, self._others()
        )

    def _others(self) -> dict[str, Saves]:
        """Return what a checkpoint holds beside weights and position; chance comes last."""
        return {
            "optimizer": Memory(self.optimizer),
            "precision": self.precision,
            "schedule": self.schedule,
            "patience": self.patience,
            "clock": self.clock,
            "logger": self.logger,
            "validator": self.validator,
            "chance": Chance(self.job.seed, self.job.device),
        }


def train(
    model: nn.Module,
    task: Task,
    feed: Feed,
    valid: Any,
    config: TrainConfig,
    folder: RunFolder,
    seed: int = 0,
    resume: bool = False,
    on_event: OnEvent | None = None,
    quiet: bool = False,
) -> Outcome:
    """Train `model` until a limit is reached; it then bears the best weights.

    `valid` is what `task.validate` is given, or None. On SIGINT or SIGTERM the step is finished,
    a checkpoint saved, and Interrupted raised. With `resume` training goes on from the newest
    checkpoint as if it had never stopped: bit for bit, on a CPU with the same number of threads.
    """
    check(config, validated=valid is not None)
    job = Job(model, task, feed, valid, config, folder, seed)
    with folder.lock(), Signals() as signals:
        t = Training(job, signals, on_event, None if quiet else sys.stderr)
        t.keeper.restore(t.precision) if resume else t.keeper.begin()
        t.progress.start()
        try:
            run_loop(t)
            return _finish(t)
        finally:
            t.progress.stop()
            t.board.close()


def run_loop(t: Training) -> None:
    """Make steps until a limit is reached: batch, forward, loss, backward, clip, step, log."""
    job, smoothing = t.job, t.job.config.label_smoothing
    device, parameters = job.device, trained(t.optimizer)
    job.model.train()
    while not t.limits.reached():
        group, tally, state = t.cursor.group(), Tally(device), t.cursor.state
        t.optimizer.zero_grad()
        for batch in group.batches:
            with t.precision.autocast():
                loss = job.task.loss(job.model, move(batch, device), state, smoothing)
            t.precision.backward(loss.total)
            state = t.cursor.carry(loss.state)
            tally.add(loss)
        t.precision.unscale(t.optimizer)
        reading = t.clipper.clip(parameters, tally.total, tally.count)
        t.health.check(reading, group, t.cursor)
        rate = t.schedule.set(t.optimizer, t.cursor.step + 1)
        t.precision.step(t.optimizer)
        t.ema.update()
        t.cursor.finish(group, state)
        t.logger.step(reading, rate)
        t.keeper.when_due(improved=t.validator.when_due())


def _finish(t: Training) -> Outcome:
    """Save, then measure the last weights: what resumes is the state before that last look."""
    folder, patience, reason = t.job.folder, t.patience, t.limits.reached()
    name = t.keeper.at_end()
    t.signals.leave(f"saved {name}. Go on with `weft train --resume {folder}`.")
    t.logger.flush()
    improved = t.validator.at_end()
    t.keeper.point_best(improved or not patience.best)
    _average(t)
    t.job.model.load_state_dict(folder.checkpoint("best").weights())
    step, best_step = t.cursor.step, patience.best_step or t.cursor.step
    which = "best weights" if patience.best else "weights kept, as no validation decided,"
    t.logger.event("done", f"done: {reason} reached; the {which} are of step {best_step}")
    t.signals.leave(f"training was done and saved in {folder}.")
    return Outcome(step, t.cursor.epoch_of_step, reason, best_step, patience.best, t.clock.seconds())


def _average(t: Training) -> None:
    """Average the last scheduled checkpoints and the very last, and keep the mean if it is the best."""
    folder, number = t.job.folder, t.job.config.average
    if number > 1:
        earlier = [c for c in folder.scheduled() if c.step < t.cursor.step][1 - number :]
        mean = folder.save_average([*earlier, folder.checkpoint("last")])
        t.keeper.point_best(t.validator.average(mean.weights()), mean)
