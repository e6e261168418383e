"""Lists of modules that keep the type of what they hold."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar, cast

from torch import nn

M = TypeVar("M", bound=nn.Module)


class Stack(nn.ModuleList, Generic[M]):
    """A ModuleList whose elements have a known type."""

    def __iter__(self) -> Iterator[M]:
        return cast("Iterator[M]", super().__iter__())

    def __getitem__(self, index: int) -> M:  # type: ignore[override]  # slices of a stack are nowhere needed
        return cast("M", super().__getitem__(index))
