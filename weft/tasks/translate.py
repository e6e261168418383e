"""Sequence to sequence of another length (S4): an encoder-decoder trained with teacher forcing."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch

from weft.core.config import option
from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Int, Tensor
from weft.core.state import State
from weft.data import BOS, EOS, Dataset, Feed
from weft.decoding import DecodingConfig, Hypothesis, decode, length_limits, stream
from weft.metrics import (
    Evaluation,
    Measurement,
    bleu,
    chrf,
    exact_match,
    perplexity,
    rouge_1,
    rouge_2,
    rouge_l,
)
from weft.models import ModelConfig, TranslationModel, TranslationStepper, build_translation
from weft.ops.loss import IGNORE
from weft.tasks.protocol import BatchConfig, Loss, Prediction, tasks
from weft.tasks.running import (
    answer_numbered,
    bucket_feed,
    each_batch,
    encode_one,
    evaluating,
    in_order,
    pieces,
    raw_column,
)

METRICS = {
    "bleu": bleu,
    "chrf": chrf,
    "exact_match": exact_match,
    "rouge_1": rouge_1,
    "rouge_2": rouge_2,
    "rouge_l": rouge_l,
}


@dataclass(frozen=True)
class TranslateConfig:
    """Section `task` of translate."""

    metrics: tuple[str, ...] = option(
        ("bleu", "chrf", "exact_match"),
        "what outputs are measured by; the first judges",
        choices=tuple(METRICS),
    )


def shift(target: Sequences) -> tuple[Sequences, Int[Tensor, "B T"]]:
    """Return decoder inputs BOS y_1 .. y_n, and what each step must say: y_1 .. y_n EOS, IGNORE after."""
    batch = target.batch_size
    begin = torch.full((batch, 1), BOS, dtype=torch.int64, device=target.device)
    inputs = Sequences(torch.cat([begin, target.data], dim=1), target.lengths + 1)
    wanted = torch.cat([target.fill(IGNORE).data, begin.new_full((batch, 1), IGNORE)], dim=1)
    return inputs, wanted.scatter(1, target.lengths.unsqueeze(1), EOS)


@tasks.register("translate")
class Translate:
    """Turn one text into another."""

    name = "translate"
    Config = TranslateConfig
    sides = ("encoder", "decoder")
    defaults: ClassVar[dict[str, dict[str, Any]]] = {}
    better: ClassVar[dict[str, str]] = {"loss": "lower", "perplexity": "lower", "accuracy": "higher"}

    def __init__(self, config: TranslateConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.source, self.target = fields["source"], fields["target"]
        if self.source.plain() == self.target.plain():  # one vocabulary, one table
            self.target = self.source

    @staticmethod
    def schema(config: TranslateConfig) -> dict[str, str]:
        return {"source": "text", "target": "text"}

    def build(self, config: ModelConfig) -> TranslationModel:
        return build_translation(self.source, self.target, config)

    def feed(self, data: Dataset, seed: int) -> Feed:
        return bucket_feed(data, self.batch, seed, "target")

    def loss(self, model: TranslationModel, batch: Any, state: State, smoothing: float) -> Loss:
        losses, wanted = self._losses(model, batch, smoothing)
        return Loss(losses.sum(), (wanted != IGNORE).sum())

    def _losses(self, model: TranslationModel, batch: Any, smoothing: float) -> tuple[Tensor, Tensor]:
        """Return the loss of every step (B, T), 0 at padding, and what was wanted (B, T)."""
        inputs, wanted = shift(batch["target"])
        y = model(batch["source"], inputs).data
        losses, _ = model.head.loss(y.flatten(0, 1), wanted.flatten(), smoothing, per_token=True)
        return losses.view_as(wanted), wanted

    def validate(self, model: TranslationModel, data: Dataset) -> dict[str, float]:
        nll, hits, count = 0.0, 0, 0
        with evaluating(model):
            for _, batch in each_batch(model, data, self.batch, "target"):
                inputs, wanted = shift(batch["target"])
                keep = wanted != IGNORE
                logits = model.head(model(batch["source"], inputs).data[keep])
                nll += float(torch.nn.functional.cross_entropy(logits.float(), wanted[keep], reduction="sum"))
                hits += int((logits.argmax(-1) == wanted[keep]).sum())
                count += int(keep.sum())
        loss = nll / count
        return {"loss": loss, "perplexity": math.exp(min(loss, 700)), "accuracy": hits / count}

    def evaluate(
        self, model: TranslationModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        predictions = self._translate_all(model, data, decoding)
        sources, references = (raw_column(rows, data.numbers, i) for i in (0, 1))
        references = references or self._decoded(data, "target")
        measured = {name: METRICS[name](predictions, references) for name in self.config.metrics}
        measured["perplexity"] = self._perplexity(model, data)
        sources = sources or self._decoded(data, "source")
        return Evaluation(measured, data.lengths("source"), predictions, references, sources=sources)

    def _translate_all(self, model: TranslationModel, data: Dataset, decoding: DecodingConfig) -> list[str]:
        with evaluating(model):
            parts = (
                (
                    places,
                    [
                        self._text(found[0])
                        for found in self.search(model, batch["source"], decoding, places.tolist())
                    ],
                )
                for places, batch in each_batch(model, data, self.batch, "target")
            )
            return in_order(len(data), parts)

    def stepper(self, model: TranslationModel) -> Stepper:
        """Return what drives the model in a search."""
        return TranslationStepper(model)

    def search(
        self,
        model: Any,
        source: Sequences,
        decoding: DecodingConfig,
        numbers: Sequence[int] | None = None,
    ) -> list[list[Hypothesis]]:
        """Return each source's hypotheses, best first."""
        limits = length_limits(source.lengths, decoding)
        stepper = self.stepper(model)
        return decode(stepper, source, source.batch_size, decoding, BOS, EOS, limits, numbers=numbers)

    def _perplexity(self, model: TranslationModel, data: Dataset) -> Measurement:
        nll, count = np.zeros(len(data)), np.zeros(len(data))
        with evaluating(model):
            for places, batch in each_batch(model, data, self.batch, "target"):
                losses, _ = self._losses(model, batch, 0.0)
                nll[places] = losses.sum(1).cpu().numpy()
                count[places] = batch["target"].lengths.cpu().numpy() + 1
        return perplexity(nll, count)

    def predict(
        self, model: Any, inputs: Iterable[str], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        def run(x: Sequences, numbers: list[int]) -> list[list[Hypothesis]]:
            return self.search(model, x, decoding, numbers)

        with evaluating(model) as device:
            for hypotheses in answer_numbered(inputs, self.source, self.batch, device, run, first):
                yield self._prediction(hypotheses or [])

    def stream(self, model: Any, source: str, decoding: DecodingConfig, number: int = 0) -> Iterator[str]:
        """Translate one text, piece by piece, sampling as input `number` of many."""
        with evaluating(model) as device:
            x = encode_one(self.source, source, device)
            limits = length_limits(x.lengths, decoding)
            if int(x.lengths):
                tokens = stream(self.stepper(model), x, decoding, BOS, EOS, limits, number=number)
                yield from pieces(tokens, self.target.decode)

    def _prediction(self, hypotheses: list[Hypothesis]) -> Prediction:
        texts = [self._text(h) for h in hypotheses]
        nbest = [
            {"text": text, "score": h.score, "log_prob": h.log_prob, "finished": h.finished}
            for text, h in zip(texts, hypotheses, strict=True)
        ]
        return Prediction(texts[0] if texts else "", {"nbest": nbest})

    def _text(self, hypothesis: Hypothesis) -> str:
        return self.target.decode(hypothesis.tokens)

    def _decoded(self, data: Dataset, name: str) -> list[str]:
        field = getattr(self, name)
        return [field.decode(data.item(i)[name]) for i in range(len(data))]
