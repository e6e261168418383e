"""A trained run: predict, score, look inside."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from weft.api.session import Session, Sources, open_session
from weft.api.settings import parse_settings
from weft.api.trace import RunTrace, record
from weft.core.config import merge, parse, plain
from weft.core.errors import ConfigError, InputError
from weft.data import Dataset, ReadOptions, Rows, RowSource, load_fields
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation
from weft.models import count_parameters
from weft.runs import RunFolder
from weft.tasks import Prediction


class Run:
    """A folder with a trained model, ready to use."""

    def __init__(self, folder: RunFolder, session: Session):
        self.folder, self.session = folder, session
        self.settings, self.task, self.model = session.settings, session.task, session.model

    def __repr__(self) -> str:
        return f"Run({str(self.folder)!r}, {self.settings.task}, {self.settings.model.families})"

    @property
    def path(self) -> Path:
        return self.folder.path

    @property
    def parameters(self) -> int:
        """The number of trainable parameters."""
        return count_parameters(self.model)

    @property
    def input_kind(self) -> str:
        """The raw kind of what `predict` is given."""
        return next(iter(self.settings.schema().values()))

    def decoding(self, **changes: Any) -> DecodingConfig:
        """Return the run's way of searching, with changes."""
        return parse(DecodingConfig, {**plain(self.settings.decoding), **changes}, "decoding")

    def predictions(self, inputs: Iterable[Any], first: int = 0, **decoding: Any) -> Iterator[Prediction]:
        """Answer raw inputs one by one, in order, reading ahead no further than a batch needs.

        `first` is the first input's number: a sample depends on its input's number and the seed.
        """
        return self.task.predict(self.model, inputs, self.decoding(**decoding), first)

    def predict(self, inputs: Iterable[Any], **decoding: Any) -> list[str]:
        """Answer raw inputs as text."""
        if isinstance(inputs, str):
            raise InputError("`predict` takes a list of inputs, but was given one text. Try predict([text]).")
        return [prediction.text for prediction in self.predictions(inputs, **decoding)]

    def stream(self, source: Any = "", number: int = 0, **decoding: Any) -> Iterator[str]:
        """Answer one input piece by piece, as its tokens come; `number` as in a list of inputs, from 0."""
        if not hasattr(self.task, "stream"):
            raise InputError(
                f"Only what is written token by token can be streamed, but {self.settings.task} answers at "
                "once. Use predict."
            )
        return self.task.stream(self.model, source, self.decoding(**decoding), number)

    def evaluate(self, data: Any = None, part: str = "test", **decoding: Any) -> Evaluation:
        """Measure the model on a file or data in memory; without one on a part of its own data."""
        rows = self.rows(data, part)
        return self.task.evaluate(self.model, self.encode(rows), rows, self.decoding(**decoding))

    def encode(self, rows: Rows) -> Dataset:
        """Turn rows into numbers as training did; refuse rows of which nothing is left."""
        dataset = self.session.dataset(rows)
        if not len(dataset):
            raise InputError(f"Nothing is left to measure of {rows.description}.")
        return dataset

    def rows(self, data: Any = None, part: str = "test") -> Rows:
        """Open a file, or data in memory, or without either a part of the run's own data."""
        if data is None:
            return self.session.sources.part(part)
        if isinstance(data, str | Path):
            overrides = {"data": {part: [str(data)]}}
            return Sources(parse_settings(merge(self.settings.plain(), overrides))).part(part)
        kinds, options = tuple(self.settings.schema().values()), self.settings.data.share(ReadOptions)
        return RowSource.from_memory(data, kinds, options)

    def trace(self, source: Any, **decoding: Any) -> RunTrace:
        """Answer one input and return everything that was tapped on the way."""
        return record(self.model, self.task, self.session.fields, source, self.decoding(**decoding))


def open_run(path: str | Path, checkpoint: str = "best", **overrides: Any) -> Run:
    """Open a run's folder with the weights of a checkpoint: best, last, a step, or a folder's name."""
    folder = RunFolder.open(path)
    weights = folder.weights(checkpoint)
    settings = parse_settings(merge(folder.config(), overrides))
    session = open_session(settings, fields=load_fields(folder.tokenizer_path), trains=False)
    _load(session.model, weights, folder)
    session.model.eval()
    return Run(folder, session)


def _load(model: nn.Module, weights: dict[str, Tensor], folder: RunFolder) -> None:
    """Load weights; only overrides can make a model they do not fit."""
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        reason = " ".join(str(error).split())[:200]
        raise ConfigError(f"{folder} does not fit the model as overridden: {reason}") from None
