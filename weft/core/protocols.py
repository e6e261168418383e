"""The protocols every family and every decoder speaks. No code in them."""

from __future__ import annotations

from typing import Any, Protocol

from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State

Memory = Any  # what a decoder attends to: prepared keys and values, one entry a source row


class Encoder(Protocol):
    """Reads whole sequences, in any direction."""

    def forward(self, x: Sequences, memory: Memory | None = None) -> Sequences: ...

    def __call__(self, x: Sequences, memory: Memory | None = None) -> Sequences: ...

    def summarise(self, encoded: Sequences) -> Float[Tensor, "B D"]: ...


class Backbone(Protocol):
    """Causal: whole sequences at once, or one step at a time, with the same result.

    After `forward` the state is each row's state at its last valid element, so cutting a ragged
    batch anywhere and carrying the state gives the whole. `memory` may have fewer rows than x:
    B = lanes * source rows, lane b attending to source row b // lanes. `step` is for evaluation: its
    dropout is not that of `forward`, which draws once for all steps.
    """

    def init_state(
        self, batch_size: int, capacity: int | None = None, memory: Memory | None = None
    ) -> State: ...

    def forward(
        self, x: Sequences, state: State | None = None, memory: Memory | None = None
    ) -> tuple[Sequences, State]: ...

    def __call__(
        self, x: Sequences, state: State | None = None, memory: Memory | None = None
    ) -> tuple[Sequences, State]: ...

    def step(
        self, x_t: Float[Tensor, "B D"], state: State, memory: Memory | None = None
    ) -> tuple[Float[Tensor, "B D"], State]: ...

    def prepare(self, encoded: Sequences, summary: Float[Tensor, "B D"]) -> Memory: ...


class Stepper(Protocol):
    """What a decoder drives: all it knows of a model.

    `start` gives a state with one lane a source row. `select` keeps lanes `rows` in that order:
    any number of lanes, in equal blocks a source row, blocks in any order of source rows.
    """

    def start(self, source: Any) -> State: ...

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Float[Tensor, "B V"], State]: ...

    def select(self, state: State, rows: Int[Tensor, "R"]) -> State: ...
