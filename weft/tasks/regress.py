"""Sequence to one number (S3)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor
from weft.core.state import State
from weft.data import Dataset, Feed
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation, loss, mae, mse, spearman
from weft.models import ModelConfig, PooledModel, build_pooled
from weft.tasks.protocol import BatchConfig, Loss, Prediction, tasks
from weft.tasks.running import answer, bucket_feed, each_batch, evaluating, in_order, written_inputs

INPUTS = ("text", "words", "values", "frames")
METRICS = {"mse": mse, "mae": mae, "spearman": spearman}
LOSSES = {"mse": torch.nn.functional.mse_loss, "huber": torch.nn.functional.huber_loss}


@dataclass(frozen=True)
class RegressConfig:
    """Section `task` of regress."""

    input: str = option("text", "what an item is", choices=INPUTS)
    loss: str = option(
        "mse", "error that training lowers: squared, or linear from one deviation on", choices=tuple(LOSSES)
    )
    metrics: tuple[str, ...] = option(
        ("mse", "mae", "spearman"), "what numbers are measured by; the first judges", choices=tuple(METRICS)
    )


@tasks.register("regress")
class Regress:
    """Tell the number that belongs to a sequence."""

    name = "regress"
    Config = RegressConfig
    sides = ("encoder",)
    unit = "item"
    defaults: dict[str, dict[str, Any]] = {"data": {"tokens": "char"}}
    better = {"loss": "lower", "mse": "lower", "mae": "lower", "spearman": "higher"}

    def __init__(self, config: RegressConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.input, self.value = fields["input"], fields["value"]

    @staticmethod
    def schema(config: RegressConfig) -> dict[str, str]:
        return {"input": config.input, "value": "value"}

    def build(self, config: ModelConfig) -> PooledModel:
        return build_pooled(self.input, 1, config)

    def feed(self, data: Dataset, seed: int) -> Feed:
        return bucket_feed(data, self.batch, seed, "value")

    def loss(self, model: PooledModel, batch: Any, state: State, smoothing: float) -> Loss:
        if smoothing:
            raise ConfigError(
                f"A number has no classes to smooth over, but `train.label_smoothing` is {smoothing}. "
                "Set it to 0."
            )
        losses = self._losses(self._scaled(model, batch["input"]), batch["value"])
        return Loss(losses.sum(), torch.tensor(len(losses)))

    def _scaled(self, model: PooledModel, x: Sequences) -> Float[Tensor, "B"]:
        """Return the numbers on the scale of training: mean 0, deviation 1."""
        return model(x).squeeze(1)

    def _losses(self, told: Float[Tensor, "B"], wanted: Float[Tensor, "B"]) -> Float[Tensor, "B"]:
        return LOSSES[self.config.loss](told, wanted.to(told.dtype), reduction="none")

    def validate(self, model: PooledModel, data: Dataset) -> dict[str, float]:
        told, wanted = self._all(model, data)
        losses = self._losses(torch.from_numpy(told), torch.from_numpy(wanted))
        told, wanted = self._raw(told), self._raw(wanted)
        return {"loss": float(losses.mean())} | {n: METRICS[n](told, wanted).value for n in METRICS}

    def _all(self, model: PooledModel, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
        """Return what the model tells and what was wanted, both (n,) and scaled, in the data's order."""
        with evaluating(model):
            parts = []
            for places, batch in each_batch(model, data, self.batch, "value"):
                told = self._scaled(model, batch["input"]).float().cpu()
                parts.append((places, torch.stack([told, batch["value"].cpu()], 1).tolist()))
        pairs = np.array(in_order(len(data), parts), np.float32)
        return pairs[:, 0], pairs[:, 1]

    def _raw(self, scaled: np.ndarray) -> np.ndarray:
        return scaled.astype(np.float64) * self.value.std + self.value.mean

    def evaluate(
        self, model: PooledModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        scaled_told, scaled_wanted = self._all(model, data)
        losses = self._losses(torch.from_numpy(scaled_told), torch.from_numpy(scaled_wanted)).numpy()
        told, wanted = self._raw(scaled_told), self._raw(scaled_wanted)
        measured = {name: METRICS[name](told, wanted) for name in self.config.metrics}
        measured["loss"] = loss(losses, np.ones(len(losses)))
        lines, references = ([written(number) for number in column] for column in (told, wanted))
        sources = written_inputs(rows, data.numbers, self.config.input)
        return Evaluation(measured, data.lengths("input"), lines, references, sources=sources, exact=False)

    def predict(
        self, model: PooledModel, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        def run(x: Sequences) -> list[float]:
            return self._raw(self._scaled(model, x).float().cpu().numpy()).tolist()

        with evaluating(model) as device:
            for number in answer(inputs, self.input, self.batch, device, run):
                yield Prediction("") if number is None else Prediction(written(number), {"value": number})


def written(number: float) -> str:
    """Write a number with the digits float32 tells apart."""
    return f"{number:.7g}"
