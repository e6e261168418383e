"""Sequence to one label, or to several (S2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from weft.core.config import option
from weft.core.sequences import Sequences
from weft.core.shapes import Bool, Float, Tensor
from weft.core.state import State
from weft.data import Dataset, Feed
from weft.decoding import DecodingConfig
from weft.metrics import (
    Evaluation,
    Measurement,
    accuracy,
    confusion,
    label_macro_f1,
    label_micro_f1,
    label_set_accuracy,
    loss,
    macro_f1,
)
from weft.models import ModelConfig, PooledModel, build_pooled
from weft.tasks.baselines import majority_score
from weft.tasks.protocol import BatchConfig, Loss, Prediction, tasks
from weft.tasks.running import (
    answer,
    bucket_feed,
    each_batch,
    evaluating,
    in_order,
    raw_column,
    written_inputs,
)

INPUTS = ("text", "words", "values", "frames")


@dataclass(frozen=True)
class ClassifyConfig:
    """Section `task` of classify."""

    input: str = option("text", "what an item is", choices=INPUTS)
    weights: str = option("none", "weight of each class in the loss", choices=("none", "balanced"))


@tasks.register("classify")
class Classify:
    """Tell which class a sequence belongs to."""

    name = "classify"
    Config = ClassifyConfig
    sides = ("encoder",)
    unit = "item"
    defaults: ClassVar[dict[str, dict[str, Any]]] = {"data": {"tokens": "word"}}
    better: ClassVar[dict[str, str]] = {"loss": "lower", "accuracy": "higher"}

    def __init__(self, config: ClassifyConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.input, self.label = fields["input"], fields["label"]
        self._weights: Tensor | None = None

    @staticmethod
    def schema(config: ClassifyConfig) -> dict[str, str]:
        return {"input": config.input, "label": "label"}

    def build(self, config: ModelConfig) -> PooledModel:
        return build_pooled(self.input, self.label.size, config)

    def feed(self, data: Dataset, seed: int) -> Feed:
        if self.config.weights == "balanced":
            self._weights = class_weights(data, self.label.size, self.label.multi)
        return bucket_feed(data, self.batch, seed, "label")

    def loss(self, model: PooledModel, batch: Any, state: State, smoothing: float) -> Loss:
        losses = self._losses(model(batch["input"]), batch["label"], smoothing, self._weights)
        return Loss(losses.sum(), torch.tensor(len(losses)))

    def _losses(
        self, logits: Float[Tensor, "B V"], label: Tensor, smoothing: float, weights: Tensor | None
    ) -> Float[Tensor, "B"]:
        """Return each item's loss; for several labels the mean over them of binary cross-entropies."""
        weights = None if weights is None else weights.to(logits)
        if self.label.multi:
            wanted = label.to(logits) * (1 - smoothing) + smoothing / 2
            cross = torch.nn.functional.binary_cross_entropy_with_logits(
                logits, wanted, weights, reduction="none"
            )
            return cross.mean(1)
        return torch.nn.functional.cross_entropy(
            logits, label, weights, ignore_index=-1, reduction="none", label_smoothing=smoothing
        )

    def validate(self, model: PooledModel, data: Dataset) -> dict[str, float]:
        logits, labels = self._logits(model, data)
        measured = {"loss": self._loss(logits, labels), "accuracy": self._accuracy(logits, labels)}
        return {name: measurement.value for name, measurement in measured.items()}

    def _accuracy(self, logits: np.ndarray, labels: np.ndarray) -> Measurement:
        if self.label.multi:
            return label_set_accuracy(logits > 0, labels > 0.5)
        return accuracy(logits.argmax(1), labels)

    def _loss(self, logits: np.ndarray, labels: np.ndarray) -> Measurement:
        """Measure the loss, without weights, of items whose label was seen in training."""
        losses = self._losses(torch.from_numpy(logits), torch.from_numpy(labels), 0.0, None)
        return loss(losses.numpy(), np.ones(len(labels)) if self.label.multi else labels >= 0)

    def _logits(self, model: PooledModel, data: Dataset) -> tuple[np.ndarray, np.ndarray]:
        with evaluating(model):
            parts = []
            for places, batch in each_batch(model, data, self.batch, "label"):
                pairs = zip(
                    model(batch["input"]).float().cpu().numpy(), batch["label"].cpu().numpy(), strict=True
                )
                parts.append((places, list(pairs)))
        pairs = in_order(len(data), parts)
        return np.stack([p for p, _ in pairs]), np.stack([y for _, y in pairs])

    def evaluate(
        self, model: PooledModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        logits, labels = self._logits(model, data)
        measured, extra = self._judge(logits, labels, data, rows)
        measured["loss"] = self._loss(logits, labels)
        told, wanted = self._names(logits), [_joined(self.label.decode(label)) for label in labels]
        sources = written_inputs(rows, data.numbers, self.config.input)
        return Evaluation(measured, data.lengths("input"), told, wanted, extra, sources)

    def _judge(
        self, logits: np.ndarray, labels: np.ndarray, data: Dataset, rows: Iterable[Any]
    ) -> tuple[dict[str, Measurement], dict[str, Any]]:
        """Return what measures the answers, and the confusion of the classes."""
        if self.label.multi:
            written = raw_column(rows, data.numbers, 1)
            return judge_sets(logits > 0, labels > 0.5, self._unseen(written, labels)), {}
        told, seen = logits.argmax(1), labels >= 0
        table = confusion(told[seen], labels[seen], self.label.size)
        measured = {"accuracy": accuracy(told, labels), "macro_f1": macro_f1(told, labels)}
        extra = {"confusion": table, "labels": list(self.label.names)}
        return measured, extra | majority_score(self.label, labels)

    def _unseen(self, written: list[Any] | None, labels: np.ndarray) -> Bool[np.ndarray, "n"]:
        """Return which items bear a label that training never showed; the arrays cannot tell."""
        if written is None:
            return np.zeros(len(labels), bool)
        return np.array([self.label.unknown(raw, row) > 0 for raw, row in zip(written, labels, strict=True)])

    def _names(self, logits: np.ndarray) -> list[str]:
        if self.label.multi:
            return [_joined(self.label.decode(row > 0)) for row in logits]
        return [self.label.names[i] for i in logits.argmax(1)]

    def predict(
        self, model: PooledModel, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        def run(x: Sequences) -> list[Tensor]:
            return list(model(x).float().cpu())

        with evaluating(model) as device:
            for logits in answer(inputs, self.input, self.batch, device, run):
                yield Prediction("") if logits is None else self._prediction(logits)

    def _prediction(self, logits: Float[Tensor, "V"]) -> Prediction:
        shares = torch.sigmoid(logits) if self.label.multi else torch.softmax(logits, 0)
        scores = dict(zip(self.label.names, shares.tolist(), strict=True))
        return Prediction(self._names(logits.numpy()[None])[0], {"scores": scores})


def judge_sets(
    told: Bool[np.ndarray, "n k"], wanted: Bool[np.ndarray, "n k"], unseen: Bool[np.ndarray, "n"]
) -> dict[str, Measurement]:
    """Measure sets of labels; labels unseen in training count as one more, that is never told."""
    if unseen.any():
        told, wanted = np.column_stack([told, np.zeros_like(unseen)]), np.column_stack([wanted, unseen])
    return {
        "accuracy": label_set_accuracy(told, wanted),
        "micro_f1": label_micro_f1(told, wanted),
        "macro_f1": label_macro_f1(told, wanted),
    }


def class_weights(data: Dataset, classes: int, multi: bool) -> Float[Tensor, "V"]:
    """Return n / (classes * n_c) for each class: rare ones weigh more, the mean weight is 1."""
    labels = data.columns["label"].flat[data.places(np.arange(len(data)))]
    counts = labels.sum(0) if multi else np.bincount(labels[labels >= 0], minlength=classes)
    return torch.from_numpy(len(data) / (classes * np.maximum(counts, 1))).float()


def _joined(names: str | list[str]) -> str:
    return names if isinstance(names, str) else ",".join(names)
