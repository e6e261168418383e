"""How much work a batch gives each module: seen on a small copy of the model, as it depends on no width."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from torch import nn

from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.nn.attention import Attention, AttentionMemory


@dataclass
class Work:
    """What one module was given.

    positions  elements its weights were applied to, padding included
    back       of them, those whose gradient is wanted too
    pairs      queries x keys, where it attends
    steps      the longest sequence it saw
    """

    positions: int = 0
    back: int = 0
    pairs: int = 0
    steps: int = 0


Works = Mapping[str, Work]


def observe(model: nn.Module, run: Callable[[], Any]) -> dict[str, Work]:
    """Run and return the work of every module that was called, by its name."""
    works: dict[str, Work] = {}
    with _hooks(model, works):
        run()
    return works


def work_of(name: str, works: Works) -> Work:
    """Return a module's work, or that of the nearest module around it that was called."""
    while name and name not in works:
        name = name.rpartition(".")[0]
    return works.get(name, Work())


def pairs_of(name: str, works: Works) -> int:
    """Return the pairs of the nearest module around that was given whole sequences."""
    while name and (name not in works or not works[name].pairs):
        name = name.rpartition(".")[0]
    return works[name].pairs if name else 0


@contextmanager
def _hooks(model: nn.Module, works: dict[str, Work]) -> Iterator[None]:
    handles = [
        module.register_forward_hook(_note(name, works)) for name, module in model.named_modules() if name
    ]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _note(name: str, works: dict[str, Work]) -> Callable[[nn.Module, Any, Any], None]:
    def note(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
        work = works.setdefault(name, Work())
        first: Any = inputs[0] if inputs else None
        if isinstance(first, Sequences):
            _note_sequences(work, first)
        elif isinstance(module, Attention):
            _note_attention(name, works, module, first, inputs[1])
        elif hasattr(first, "shape") and hasattr(output, "shape"):
            _note_tensor(work, module, first, output)

    return note


def _note_sequences(work: Work, x: Sequences) -> None:
    elements = x.batch_size * x.max_length
    work.positions += elements
    work.back += elements if x.data.requires_grad else 0
    work.pairs += elements * x.max_length
    work.steps = max(work.steps, x.max_length)


def _note_tensor(work: Work, module: nn.Module, x: Tensor, y: Tensor) -> None:
    """Count vectors: a convolution of torch has its channels second, everything else last."""
    elements = y.numel() // (y.shape[1] if isinstance(module, nn.Conv1d) else max(y.shape[-1], 1))
    work.positions += elements
    work.back += elements if x.requires_grad else 0


def _note_attention(
    name: str, works: dict[str, Work], module: Attention, query: Tensor, memory: AttentionMemory
) -> None:
    """Count queries and pairs; the keys were made once, however often they are asked."""
    work, keys = works[name], memory.keys.shape[2]
    elements = query.shape[0] * query.shape[1]
    work.positions += elements
    work.back += elements
    work.pairs += elements * keys
    work.steps = max(work.steps, keys)
    if module.kind != "multihead":
        made = memory.keys.shape[0] * keys
        works[f"{name}.key"] = Work(made, made)
