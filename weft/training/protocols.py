"""What the loop asks of its parts. No code in them."""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from weft.core.shapes import Tensor
from weft.core.state import State


class Loss(Protocol):
    """A summed loss, the number of elements summed over, and the state to carry on with."""

    @property
    def total(self) -> Tensor: ...

    @property
    def count(self) -> Tensor: ...

    @property
    def state(self) -> State: ...


class Task(Protocol):
    """The part of weft.tasks.Task that training needs: what is learnt, and how it is measured meanwhile."""

    better: ClassVar[dict[str, str]]

    def loss(self, model: Any, batch: Any, state: State, smoothing: float) -> Loss: ...

    def validate(self, model: Any, data: Any) -> dict[str, float]: ...


class Saves(Protocol):
    """A part of training that remembers: nested plain data and tensors out, the same back in."""

    def save(self) -> Any: ...

    def load(self, saved: Any) -> None: ...
