"""States are nested tuples of tensors, every leaf batch-first. These functions walk them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch

from weft.core.shapes import Int, Tensor

State = Any  # nested NamedTuples (or tuples) of tensors; None stands for "nothing kept"


def map_state(function: Callable[[Tensor], Tensor], state: State) -> State:
    """Apply `function` to every leaf and rebuild the same nesting."""
    if state is None:
        return None
    if isinstance(state, torch.Tensor):
        return function(state)
    children = [map_state(function, child) for child in state]
    return type(state)(*children) if hasattr(state, "_fields") else tuple(children)


def leaves(state: State) -> Iterator[Tensor]:
    """Yield every tensor of a state in a fixed order."""
    if isinstance(state, torch.Tensor):
        yield state
    elif state is not None:
        for child in state:
            yield from leaves(child)


def rebuild(like: State, tensors: Iterator[Tensor]) -> State:
    """Return a state nested as `like` and on its device, its leaves taken from `tensors` in order."""
    return map_state(lambda leaf: next(tensors).to(leaf.device), like)


def select_rows(state: State, rows: Int[Tensor, "R"]) -> State:
    """Return the state of batch rows `rows`, in that order."""
    return map_state(lambda leaf: leaf.index_select(0, rows), state)


def detach(state: State) -> State:
    """Cut the state from the graph that made it (truncated backpropagation through time)."""
    return map_state(lambda leaf: leaf.detach(), state)


def where_rows(keep: Tensor, new: State, old: State) -> State:
    """Return `new` in the rows where keep (B,) is True and `old` elsewhere."""
    olds = leaves(old)

    def choose(leaf: Tensor) -> Tensor:
        return torch.where(keep.view(-1, *[1] * (leaf.dim() - 1)), leaf, next(olds))

    return map_state(choose, new)
