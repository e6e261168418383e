"""Listening inside a model without changing it: `tap(x, "name")` is the identity."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from weft.core.shapes import Tensor

_listener: ContextVar[Trace | None] = ContextVar("listener", default=None)
_path: ContextVar[tuple[str, ...]] = ContextVar("path", default=())


@dataclass
class Trace:
    """What was recorded while somebody listened: name -> tensors in the order of the calls."""

    records: dict[str, list[Tensor]] = field(default_factory=dict)

    def names(self) -> list[str]:
        return list(self.records)

    def __getitem__(self, name: str) -> list[Tensor]:
        return self.records[name]


@contextmanager
def listen() -> Iterator[Trace]:
    """Record every tap inside the block."""
    trace = Trace()
    token = _listener.set(trace)
    try:
        yield trace
    finally:
        _listener.reset(token)


def listening() -> bool:
    """Tell whether anybody listens, for values that cost something to make."""
    return _listener.get() is not None


@contextmanager
def scope(name: str) -> Iterator[None]:
    """Prefix the names of taps inside the block with `name/`."""
    token = _path.set((*_path.get(), name))
    try:
        yield
    finally:
        _path.reset(token)


def tap(x: Tensor, name: str) -> Tensor:
    """Return x; when somebody listens, record it under the scopes around and `name`."""
    trace = _listener.get()
    if trace is not None:
        trace.records.setdefault("/".join((*_path.get(), name)), []).append(x.detach())
    return x
