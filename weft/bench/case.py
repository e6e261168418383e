"""What is timed: inputs, the sides that work on them, and the equation they must agree with."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch import nn

from weft.core.shapes import Tensor

DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "tf32": torch.float32, "fp32": torch.float32}
TOLERANCE = {"bf16": 5e-2, "fp16": 1e-2, "tf32": 1e-2, "fp32": 1e-4}  # of the norm, outputs and gradients


class Side(NamedTuple):
    """One that does the work: a name, what holds its weights, and the call from inputs to outputs."""

    name: str
    module: nn.Module
    call: Callable[..., tuple[Tensor, ...]]


class Sides(NamedTuple):
    """Who is timed (weft first, then its peers), and the reference that weft must equal."""

    timed: list[Side]
    reference: Side


@dataclass(frozen=True)
class Case:
    """One row of a table: how to draw the inputs and make the sides, and in which precision they work."""

    name: str
    dtype: str
    inputs: Callable[[], tuple[Tensor, ...]]
    sides: Callable[[torch.device], Sides]
    steps: int = 0  # time steps times layers, to tell the time of one
    headline: bool = False  # shown on the first page

    @property
    def title(self) -> str:
        return f"{self.name} {self.dtype}"

    def draw(self, device: torch.device) -> tuple[Tensor, ...]:
        """Return inputs on the device; those of floating point ask for gradients."""
        return tuple(_place(x, device, DTYPES[self.dtype]) for x in self.inputs())

    def build(self, device: torch.device) -> Sides:
        """Make every side's module on the device; the reference holds the same rounded weights, wider."""
        made, dtype = self.sides(device), DTYPES[self.dtype]
        for side in made.timed:
            side.module.to(device, dtype)
        made.reference.module.to(device, dtype).to(wide(device))
        return made


def compiled(run: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a peer for the sizes of its case.

    What was compiled for the cases before is forgotten: beside it torch would make code for any size, which
    is slower, and at last run the peer eagerly.
    """
    torch.compiler.reset()
    return torch.compile(run, dynamic=False)


def wide(device: torch.device) -> torch.dtype:
    """Return the precision of the reference."""
    return torch.float32 if device.type == "cuda" else torch.float64


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Let products and cuDNN use tf32, or forbid it, on both sides alike."""
    products, layers = bool(torch.backends.cuda.matmul.allow_tf32), bool(torch.backends.cudnn.allow_tf32)
    try:
        _allow_tf32(allowed, allowed)
        yield
    finally:
        _allow_tf32(products, layers)


def _allow_tf32(products: bool, layers: bool) -> None:
    torch.backends.cuda.matmul.allow_tf32 = products
    torch.backends.cudnn.allow_tf32 = layers


def _place(x: Tensor, device: torch.device, dtype: torch.dtype) -> Tensor:
    return x.to(device, dtype).requires_grad_() if x.is_floating_point() else x.to(device)
