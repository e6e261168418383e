"""What a task is: what goes in and out, which model, which loss, which metrics, how to predict."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from torch import nn

from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.registry import Registry
from weft.core.shapes import Tensor
from weft.core.state import State
from weft.data import Dataset, Feed, Field
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation
from weft.models import ModelConfig

Batch = Mapping[str, Any]


@dataclass(frozen=True)
class Loss:
    """A summed loss, the number of elements summed over, and the state to carry on with."""

    total: Tensor
    count: Tensor
    state: State = None


@dataclass(frozen=True)
class Prediction:
    """One item's answer: a line of text, and the same as plain data for `--json`."""

    text: str
    plain: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class BatchConfig:
    """How large batches are: section `batch`."""

    tokens: int | None = option(4096, "padded elements a batch, source and target together", low=1)
    rows: int | None = option(None, "items a batch, instead of `tokens`", low=1)

    def __post_init__(self) -> None:
        """Refuse a batch of no stated size."""
        if self.tokens is None and self.rows is None:
            raise ConfigError("A batch is sized by `batch.tokens` or by `batch.rows`. Give one of the two.")


class Task(Protocol):
    """One entry of the registry is a class of this shape; an instance has learned its fields.

    Config    dataclass of the section `task`
    sides     sides of a model it needs: "encoder", "decoder"
    defaults  values of other sections that differ from theirs, such as {"data": {"tokens": "char"}}
    better    validation metric -> "higher" or "lower"

    A task may have a static `view(config)`, the View by which a source is cut into parts by position;
    `check_input(raw)`, which refuses an input it cannot answer; `given(model, raw, device)`, what the model
    reads for one raw input and the names of its elements, where that is not the encoded first field;
    `unit`, what its loss counts, where that is no token; and, where it writes token by token,
    `stepper(model)`, what drives the model, `stream(model, raw, decoding, number)`, and with two sides
    `search(model, source, decoding)`, whose first hypothesis a trace rereads.
    """

    name: ClassVar[str]
    Config: ClassVar[type]
    sides: ClassVar[tuple[str, ...]]
    defaults: ClassVar[dict[str, dict[str, Any]]]
    better: ClassVar[dict[str, str]]

    def __init__(self, config: Any, fields: dict[str, Field], batch: BatchConfig): ...

    @staticmethod
    def schema(config: Any) -> dict[str, str]:
        """Name what a row holds: field -> raw kind, the input first."""
        ...

    def build(self, config: ModelConfig) -> nn.Module:
        """Build the model this task trains."""
        ...

    def feed(self, data: Dataset, seed: int) -> Feed:
        """Return the batches to train on."""
        ...

    def loss(self, model: Any, batch: Batch, state: State, smoothing: float) -> Loss:
        """Return the training loss of a batch."""
        ...

    def validate(self, model: Any, data: Dataset) -> dict[str, float]:
        """Measure quickly, for choosing among checkpoints."""
        ...

    def evaluate(
        self, model: Any, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        """Measure everything; `rows` are the raw rows behind `data`, for references as they were written."""
        ...

    def predict(
        self, model: Any, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        """Answer raw inputs one by one, in order; `first` numbers the first, for samples of its own."""
        ...


tasks: Registry[Any] = Registry("task")
