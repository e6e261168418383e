"""How fast training runs here: ten steps on the real data, into a folder that is thrown away."""

from __future__ import annotations

import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

from torch import nn

from weft.data import Feed
from weft.runs import RunFolder
from weft.training import TrainConfig, train

STEPS = 10
WARM_UP = 2  # steps that are slower than the rest: memory is fetched, kernels are chosen


@dataclasses.dataclass(frozen=True)
class Speed:
    """What the probe measured."""

    steps: int
    seconds: float
    tokens: int

    @property
    def tokens_per_second(self) -> float:
        return self.tokens / max(self.seconds, 1e-9)


def measure_speed(model: nn.Module, task: Any, feed: Feed, config: TrainConfig, seed: int) -> Speed:
    """Train the model a few steps (it is changed) and return the rate of those after the first."""
    marks: list[tuple[float, int]] = []

    def note(name: str, values: dict[str, Any]) -> None:
        if name == "train":
            marks.append((time.perf_counter(), values["tokens"]))

    with tempfile.TemporaryDirectory(prefix="weft-probe-") as place:
        folder = RunFolder.create(Path(place) / "run")
        train(model, task, feed, None, _short(config), folder, seed, on_event=note, quiet=True)
    (begin, before), (end, after) = marks[WARM_UP - 1], marks[STEPS - 1]
    return Speed(STEPS - WARM_UP, end - begin, after - before)


def _short(config: TrainConfig) -> TrainConfig:
    """Return the same training, ended after a few steps, with nothing beside the steps themselves."""
    return dataclasses.replace(
        config,
        steps=STEPS,
        epochs=None,
        tokens=None,
        minutes=None,
        patience=0,
        average=0,
        tensorboard=False,
        log_every=1,
        checkpoint_every=10 * STEPS,
        schedule="constant" if config.schedule == "plateau" else config.schedule,
    )
