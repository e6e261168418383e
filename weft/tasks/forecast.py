"""How a numeric series goes on (S8): all steps of the horizon at once, from the steps before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

import numpy as np
import torch

from weft.core.config import option
from weft.core.errors import ConfigError, DataError
from weft.core.shapes import Float, Tensor
from weft.core.state import State
from weft.data import Dataset, Feed, WindowFeed
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation, mae, mase, mse, smape
from weft.models import ForecastModel, ModelConfig, build_forecast
from weft.models.forecasting import LEVELS
from weft.tasks.protocol import BatchConfig, Loss, Prediction, tasks
from weft.tasks.running import evaluating, to_device
from weft.tasks.sources import View
from weft.tasks.steps import StepRows

LOSSES = {
    "mse": torch.nn.functional.mse_loss,
    "mae": torch.nn.functional.l1_loss,
    "huber": torch.nn.functional.huber_loss,
}


@dataclass(frozen=True)
class ForecastConfig:
    """Section `task` of forecast."""

    history: int = option(96, "steps known", low=1)
    horizon: int = option(24, "steps to be told", low=1)
    stride: int = option(1, "steps from one training window to the next", low=1)
    channels: str = option(
        "joint", "channels told together, or one by one by the same network", choices=("joint", "separate")
    )
    normalise: str = option(
        "last",
        "level taken off each history and put back: its last value, or its mean and deviation",
        choices=tuple(LEVELS),
    )
    linear: bool = option(True, "a linear map from history to horizon, to which the network adds")
    loss: str = option("mse", "error that training lowers", choices=tuple(LOSSES))
    counts: tuple[int, ...] = option(
        (), "steps of each series for train, valid and test, instead of data.fractions", low=0
    )

    def __post_init__(self) -> None:
        """Refuse parts that are not three."""
        if len(self.counts) not in (0, 3):
            raise ConfigError(
                f"`task.counts` must be three numbers of steps, but is {self.counts}. Try 8640,2880,2880."
            )


@tasks.register("forecast")
class Forecast:
    """Tell the next steps of a series."""

    name = "forecast"
    Config = ForecastConfig
    sides = ("encoder",)
    defaults: dict[str, dict[str, Any]] = {"data": {"split": "position"}, "batch": {"rows": 32}}
    better = {"loss": "lower", "mse": "lower", "mae": "lower"}

    def __init__(self, config: ForecastConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch, self.series = config, batch, fields["series"]

    @staticmethod
    def schema(config: ForecastConfig) -> dict[str, str]:
        return {"series": "values"}

    @staticmethod
    def view(config: ForecastConfig) -> View:
        """Return how parts are cut by position: within each series, histories reaching back."""
        return partial(StepRows, lookback=config.history, counts=config.counts)

    def build(self, config: ModelConfig) -> ForecastModel:
        c = self.config
        return build_forecast(
            self.series,
            c.history,
            c.horizon,
            config,
            separate=c.channels == "separate",
            normalise=c.normalise,
            linear=c.linear,
        )

    def feed(self, data: Dataset, seed: int) -> Feed:
        return self._windows(data, self.config.stride, seed, shuffle=True)

    def _windows(self, data: Dataset, stride: int, seed: int = 0, shuffle: bool = False) -> WindowFeed:
        c = self.config
        rows = self.batch.rows or max(1, (self.batch.tokens or 1) // (c.history + c.horizon))
        return WindowFeed(data.columns["series"], c.history, c.horizon, stride, rows, seed, shuffle)

    def loss(self, model: ForecastModel, batch: Any, state: State, smoothing: float) -> Loss:
        if smoothing:
            raise ConfigError(
                f"A number has no classes to smooth over, but `train.label_smoothing` is {smoothing}. "
                "Set it to 0."
            )
        future = batch["future"]
        total = LOSSES[self.config.loss](model(batch["history"]), future, reduction="sum")
        return Loss(total, torch.tensor(future.numel()))

    def validate(self, model: ForecastModel, data: Dataset) -> dict[str, float]:
        names, sums, count = ("loss", "mse", "mae"), torch.zeros(3, dtype=torch.float64), 0
        errors = [LOSSES[kind] for kind in (self.config.loss, "mse", "mae")]
        for told, batch in self._told(model, data):
            sums += torch.stack([error(told, batch["future"], reduction="sum") for error in errors]).cpu()
            count += told.numel()
        return dict(zip(names, (sums / count).tolist(), strict=True))

    def _told(
        self, model: ForecastModel, data: Dataset
    ) -> Iterator[tuple[Float[Tensor, "B F C"], dict[str, Any]]]:
        """Yield every window in order: what the model tells, and the window."""
        feed = self._windows(data, 1)
        with evaluating(model) as device:
            for position in range(feed.batches(0)):
                batch = to_device(feed.batch(0, position), device)
                yield model(batch["history"]), batch

    def evaluate(
        self, model: ForecastModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        parts = [
            (told.cpu().numpy(), batch["future"].cpu().numpy()) for told, batch in self._told(model, data)
        ]
        told, future = (np.concatenate(column) for column in zip(*parts, strict=True))
        measured = {"mse": mse(told, future), "mae": mae(told, future)}
        told, future = self.series.decode(told), self.series.decode(future)
        scale = self.series.change
        if (scale > 0).any():  # a channel that never changes cannot be scaled, and is left out
            measured["mase"] = mase(told[:, :, scale > 0], future[:, :, scale > 0], scale[scale > 0])
        measured["smape"] = smape(told, future)
        return Evaluation(measured, np.full(len(told), self.config.history), unit="steps")

    def predict(
        self, model: ForecastModel, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        source = iter(inputs)
        with evaluating(model) as device:
            while chunk := list(islice(source, self.batch.rows or 1)):
                histories = [self._history(raw) for raw in chunk]
                known = [history for history in histories if history is not None]
                told = iter(self._answer(model, known, device))
                yield from (Prediction("") if h is None else self._prediction(next(told)) for h in histories)

    def _answer(
        self, model: ForecastModel, histories: list[np.ndarray], device: torch.device
    ) -> list[np.ndarray]:
        if not histories:
            return []
        told = model(torch.from_numpy(np.stack(histories)).to(device))
        return list(self.series.decode(told.float().cpu().numpy()))

    def _history(self, raw: Any) -> Float[np.ndarray, "H C"] | None:
        """Return the last steps of a raw series (steps, or a line of JSON), scaled; None for an empty one."""
        raw = read_line(raw) if isinstance(raw, str) else raw
        if raw is None or len(raw) == 0:
            return None
        self.check_input(raw)
        return self.series.encode(raw)[-self.config.history :]

    def given(self, model: ForecastModel, raw: Any, device: torch.device) -> tuple[Tensor, list[str]]:
        """Return the history that the model reads of one raw series; a patch is called by its last step."""
        history = self._history(raw)
        if history is None:
            return torch.zeros(0, device=device), []
        ends = range(model.patch, len(history) + 1, model.patch)
        return torch.from_numpy(history[None]).to(device), [str(end) for end in ends]

    def check_input(self, raw: Any) -> None:
        """Refuse a series shorter than the history."""
        if 0 < len(raw) < self.config.history:
            raise DataError(
                f"A forecast needs the last {self.config.history} steps (`task.history`), but got "
                f"{len(raw)}. Give more of the series."
            )

    def _prediction(self, future: Float[np.ndarray, "F C"]) -> Prediction:
        steps = [float(f"{x:.7g}") for x in future.flat]  # the digits float32 tells apart
        width = self.series.width
        told = steps if width == 1 else [steps[i : i + width] for i in range(0, len(steps), width)]
        return Prediction(json.dumps(told), {"forecast": told})


def read_line(line: str) -> list[Any]:
    """Read a series written as JSON: a list of steps, each a number or a list of numbers."""
    try:
        series = json.loads(line) if line.strip() else []
    except ValueError:
        series = None
    if not isinstance(series, list):
        raise DataError(
            f"A series must be a JSON list of steps, such as [[1.0, 2.5], [1.1, 2.4]], but is {line:.60}."
        )
    return series
