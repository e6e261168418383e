"""Text, one token after another (S6): a language model of characters, bytes, words or subwords."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Int, Tensor
from weft.core.state import State
from weft.data import BOS, EOS, PAD, UNK, Dataset, Feed, StreamFeed
from weft.decoding import DecodingConfig, Hypothesis, decode, length_limits, stream
from weft.metrics import Evaluation, Measurement, bits, loss, perplexity
from weft.models import CausalModel, ModelConfig, PromptStepper, build_causal
from weft.nn.families import families
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
from weft.tasks.scoring import (
    Scores,
    ShuffledWindows,
    hit_rate,
    in_lines,
    joined_text,
    lines_as_targets,
    score_batch,
    score_stream,
    score_windows,
)
from weft.tasks.text_cache import TextCache

VALIDATION_ROWS = 16  # pieces of the validation text read side by side
WINDOW = 1024  # tokens of a stream scored at once


@dataclass(frozen=True)
class LanguageConfig:
    """Section `task` of language."""

    stream: bool = option(True, "the lines are one text, read on and on; false: each line is by itself")
    window: int = option(
        128, "tokens of a text a batch row reads at once: as far back as gradients reach", low=1
    )
    cache: int = option(
        0, "tokens of the text behind it that an evaluation may also look up; 0: none", low=0, high=1 << 20
    )
    cache_share: float = option(0.3, "share of the probability that the cache gets", low=0.0, high=0.99)
    cache_sharpness: float = option(20.0, "how much likeness counts in the cache", low=0.0)


@tasks.register("language")
class Language:
    """Predict the next token of a text. A line ends with EOS, which stands for the newline.

    A family whose state has a fixed size reads the training text in contiguous rows and carries its
    state from window to window; a Transformer reads windows by themselves.
    """

    name = "language"
    Config = LanguageConfig
    sides = ("decoder",)
    defaults: dict[str, dict[str, Any]] = {
        "data": {"tokens": "char", "empty": "keep", "split": "position"},
        "decoding": {"method": "sample", "max_length": 200},
    }
    better = {"loss": "lower", "perplexity": "lower", "accuracy": "higher"}

    def __init__(self, config: LanguageConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.text = fields["text"]
        self.carries = config.stream  # until `build` learns the family

    @staticmethod
    def schema(config: LanguageConfig) -> dict[str, str]:
        return {"text": "text"}

    def build(self, config: ModelConfig) -> CausalModel:
        family = config.sides["decoder"].family
        self.carries = self.config.stream and families[family].streams
        if self.config.cache and not self.carries:
            raise ConfigError(
                f"`task.cache` must be 0 unless one text is read in a stream, but is {self.config.cache}. "
                "Set it to 0, or choose task.stream=true and a family other than transformer."
            )
        return build_causal(self.text, self.text.size, config)

    @property
    def rows(self) -> int:
        """Rows of a batch of windows."""
        return self.batch.rows or max(1, (self.batch.tokens or 1) // self.config.window)

    def feed(self, data: Dataset, seed: int) -> Feed:
        if not self.config.stream:
            return bucket_feed(data, self.batch, seed, "text")
        if self.carries:
            return StreamFeed(joined_text(data), self.rows, self.config.window)
        return ShuffledWindows(joined_text(data), self.rows, self.config.window, seed)

    def loss(self, model: CausalModel, batch: Any, state: State, smoothing: float) -> Loss:
        inputs, wanted = self._pair(batch)
        y, state = model(inputs, state)
        total, count = model.head.loss(y.data.flatten(0, 1), wanted.flatten(), smoothing)
        return Loss(total, count, state)

    def _pair(self, batch: Any) -> tuple[Sequences, Int[Tensor, "B T"]]:
        """Return what a batch gives to read, and what each step must say."""
        if self.config.stream:
            return batch["input"], batch["target"].fill(IGNORE).data
        return lines_as_targets(batch["text"])

    def validate(self, model: CausalModel, data: Dataset) -> dict[str, float]:
        """Measure without the cache."""
        scores = self._score(model, data, min(self.rows, VALIDATION_ROWS))
        nll = float(scores.nll.mean())
        return {"loss": nll, "perplexity": _exp(nll), "accuracy": float(scores.hit.mean())}

    def _score(self, model: CausalModel, data: Dataset, rows: int, cache: TextCache | None = None) -> Scores:
        """Score every token, line after line, an EOS after each."""
        with evaluating(model):
            if not self.config.stream:
                return self._score_lines(model, data)
            if self.carries:
                return score_stream(model, joined_text(data), rows, WINDOW // rows, cache)
            return score_windows(model, joined_text(data), rows, self.config.window)

    def _score_lines(self, model: CausalModel, data: Dataset) -> Scores:
        def run(batch: Any) -> list[Scores]:
            inputs, wanted = lines_as_targets(batch["text"])
            nll, hit = score_batch(model, inputs, wanted)
            pairs = zip(inputs.with_data(nll).unpad(), inputs.with_data(hit).unpad(), strict=True)
            return [Scores(n.double().cpu().numpy(), h.cpu().numpy()) for n, h in pairs]

        parts = ((places, run(batch)) for places, batch in each_batch(model, data, self.batch, "text"))
        return Scores.join(in_order(len(data), parts))

    def evaluate(
        self, model: CausalModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        """Measure by line. A text is read in one row from its beginning, each character scored once."""
        lengths, characters = data.lengths("text"), self._characters(data, rows)
        rows_read = 1 if self.carries else self.rows
        nll, hits = in_lines(self._score(model, data, rows_read, self._cache()), lengths)
        measured: dict[str, Measurement] = {
            "bits_per_character": bits(nll, characters),
            "perplexity": perplexity(nll, lengths + 1),
            "loss": loss(nll, lengths + 1),
            "accuracy": hit_rate(hits, lengths + 1),
        }
        if self.config.cache:
            plain, _ = in_lines(self._score(model, data, rows_read), lengths)
            measured["bits_without_cache"] = bits(plain, characters)
        return Evaluation(measured, lengths)

    def _cache(self) -> TextCache | None:
        config = self.config
        return TextCache(config.cache, config.cache_share, config.cache_sharpness) if config.cache else None

    def _characters(self, data: Dataset, rows: Iterable[Any]) -> np.ndarray:
        """Count each line's characters as it was written, and one for its end."""
        lines = raw_column(rows, data.numbers, 0)
        if lines is None or data.counts is None or data.counts.cut:
            lines = [self.text.decode(data.item(i)["text"]) for i in range(len(data))]
        return np.array([len(line) + 1 for line in lines])

    def predict(
        self, model: Any, inputs: Iterable[str], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        """Continue each prompt to the end of its line; an empty one only if `decoding.empty`."""
        stepper = self.stepper(model)

        def run(prompts: Sequences, numbers: list[int]) -> list[Prediction]:
            limits = length_limits(prompts.lengths, decoding)
            size = prompts.batch_size
            found = decode(stepper, prompts, size, decoding, EOS, EOS, limits, numbers=numbers)
            return [self._prediction(*pair) for pair in zip(prompts.unpad(), found, strict=True)]

        with evaluating(model) as device:
            told = answer_numbered(inputs, self.text, self.batch, device, run, first, decoding.empty)
            yield from (prediction or Prediction("") for prediction in told)

    def stepper(self, model: CausalModel) -> Stepper:
        """Return what drives the model behind a prompt."""
        return PromptStepper(model, EOS, never=(PAD, UNK, BOS))

    def stream(self, model: Any, prompt: str, decoding: DecodingConfig, number: int = 0) -> Iterator[str]:
        """Continue one prompt to the end of its line, piece by piece, sampling as input `number` of many."""
        with evaluating(model) as device:
            x = encode_one(self.text, prompt, device)
            limits, begin = length_limits(x.lengths, decoding), x.data[0].tolist()
            tokens = stream(self.stepper(model), x, decoding, EOS, EOS, limits, number=number)
            yield from pieces(tokens, lambda added: self._continuation(begin, added))

    def _prediction(self, prompt: Int[Tensor, "P"], found: list[Hypothesis]) -> Prediction:
        begin = prompt.tolist()
        nbest = [
            {
                "text": self._continuation(begin, h.tokens),
                "score": h.score,
                "log_prob": h.log_prob,
                "finished": h.finished,
            }
            for h in found
        ]
        return Prediction(str(nbest[0]["text"]) if nbest else "", {"nbest": nbest})

    def _continuation(self, prompt: list[int], tokens: list[int]) -> str:
        """Return the text that, written behind the prompt, makes the whole line."""
        return self.text.decode(prompt + tokens)[len(self.text.decode(prompt)) :]


def _exp(x: float) -> float:
    return math.exp(min(x, 700))
