"""Sequence to one label a word (S4)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.core.config import option
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State
from weft.data import Dataset, Feed
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation, confusion, loss, span_f1, token_accuracy, token_macro_f1
from weft.metrics.spans import MARKS
from weft.models import LabelModel, ModelConfig, build_label
from weft.ops.loss import IGNORE, token_losses
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


@dataclass(frozen=True)
class TagConfig:
    """Section `task` of tag."""

    spans: str = option(
        "auto",
        "labels mark spans as B-X I-X O, or with E-X and S-X too; auto looks at them",
        choices=("auto", "true", "false"),
    )


@dataclass(frozen=True)
class Tagged:
    """What a model made of one item: its labels, and the sum of their losses; -1 is a label unseen."""

    predicted: Int[np.ndarray, "T"]
    wanted: Int[np.ndarray, "T"]
    nll: float

    @property
    def counted(self) -> int:
        """How many labels have a loss: those seen in training."""
        return int((self.wanted != IGNORE).sum())


@tasks.register("tag")
class Tag:
    """Give every word its label."""

    name = "tag"
    Config = TagConfig
    sides = ("encoder",)
    defaults: dict[str, dict[str, Any]] = {"data": {"words": "chars"}}
    better = {"loss": "lower", "accuracy": "higher", "span_f1": "higher"}

    def __init__(self, config: TagConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.words, self.labels = fields["words"], fields["labels"]
        auto = config.spans == "auto"
        self.spans = has_spans(self.labels.names) if auto else config.spans == "true"

    @staticmethod
    def schema(config: TagConfig) -> dict[str, str]:
        return {"words": "words", "labels": "labels"}

    def build(self, config: ModelConfig) -> LabelModel:
        return build_label(self.words, self.labels.size, config)

    def feed(self, data: Dataset, seed: int) -> Feed:
        return bucket_feed(data, self.batch, seed, "labels")

    def loss(self, model: LabelModel, batch: Any, state: State, smoothing: float) -> Loss:
        logits, wanted = model(batch["words"]), batch["labels"]
        keep = wanted.fill(IGNORE).data != IGNORE
        return Loss(token_losses(logits.data[keep], wanted.data[keep], smoothing).sum(), keep.sum())

    def validate(self, model: LabelModel, data: Dataset) -> dict[str, float]:
        found = self._tag(model, data)
        told, wanted = [t.predicted for t in found], [t.wanted for t in found]
        nll, counted = sum(t.nll for t in found), sum(t.counted for t in found)
        values = {"loss": nll / max(counted, 1), "accuracy": token_accuracy(told, wanted).value}
        if self.spans:
            values["span_f1"] = span_f1(self._names(told), self._names(wanted)).value
        return values

    def _tag(self, model: LabelModel, data: Dataset) -> list[Tagged]:
        """Label every item of a data set."""
        with evaluating(model):
            parts = (
                (places, tag_batch(model(batch["words"]), batch["labels"]))
                for places, batch in each_batch(model, data, self.batch, "labels")
            )
            return in_order(len(data), parts)

    def _names(self, labels: Iterable[np.ndarray]) -> list[list[str]]:
        return [self.labels.decode(item) for item in labels]

    def evaluate(
        self, model: LabelModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        found = self._tag(model, data)
        told, wanted = [t.predicted for t in found], [t.wanted for t in found]
        predictions, references = self._names(told), self._written(data, rows, wanted)
        measured = {"span_f1": span_f1(predictions, references)} if self.spans else {}
        measured["accuracy"] = token_accuracy(told, wanted)
        measured["macro_f1"] = token_macro_f1(told, wanted)
        measured["loss"] = loss([t.nll for t in found], [t.counted for t in found])
        table = confusion(np.concatenate(told), np.concatenate(wanted), self.labels.size)
        extra = {"confusion": table, "labels": list(self.labels.names)}
        extra |= majority_score(self.labels, np.concatenate(wanted))
        lines = [" ".join(labels) for labels in predictions], [" ".join(labels) for labels in references]
        sources = written_inputs(rows, data.numbers, "words")
        return Evaluation(measured, data.lengths("words"), *lines, extra, sources, unit="words")

    def _written(self, data: Dataset, rows: Iterable[Any], wanted: Sequence[np.ndarray]) -> list[list[str]]:
        """Return the labels as they were written, cut where the words were cut."""
        raws = raw_column(rows, data.numbers, 1)
        if raws is None:
            return self._names(wanted)
        return [list(raw[: len(ids)]) for raw, ids in zip(raws, wanted, strict=True)]

    def predict(
        self, model: LabelModel, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        def run(x: Sequences) -> list[Tensor]:
            logits = model(x)
            return logits.with_data(torch.softmax(logits.data.float(), 2).cpu()).unpad()

        with evaluating(model) as device:
            for shares in answer(inputs, self.words, self.batch, device, run):
                yield Prediction("") if shares is None else self._prediction(shares)

    def _prediction(self, shares: Float[Tensor, "T V"]) -> Prediction:
        scores, ids = shares.max(1)
        labels = self.labels.decode(ids.numpy())
        return Prediction(" ".join(labels), {"labels": labels, "scores": scores.tolist()})


def tag_batch(logits: Sequences, labels: Sequences) -> list[Tagged]:
    """Take the likeliest label of each word, and sum the losses of each row."""
    wanted = labels.fill(IGNORE)
    losses = token_losses(logits.data.flatten(0, 1), wanted.data.flatten()).view(wanted.data.shape)
    told = logits.with_data(logits.data.argmax(2).cpu()).unpad()
    rows = zip(told, wanted.with_data(wanted.data.cpu()).unpad(), losses.sum(1).tolist(), strict=True)
    return [Tagged(p.numpy(), w.numpy(), nll) for p, w, nll in rows]


def has_spans(names: Iterable[str]) -> bool:
    """Tell whether labels are those of spans: B-X, I-X (E-X, S-X) and O, nothing else, and some B-X."""
    names = set(names) - {"O"}
    marked = all(name[:1] in MARKS and name[1:2] == "-" and len(name) > 2 for name in names)
    return marked and any(name[0] == "B" for name in names)
