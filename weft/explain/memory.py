"""Bytes that training and use take: what is kept, counted; what a batch adds, measured on small copies.

It is measured on the CPU. There cross-entropy keeps logits up to `weft.ops.loss.LARGE` bytes; on a GPU only
up to `LARGE_ON_GPU`, beyond that a chunk of them (`weft.ops.kernels.loss.CHUNK_BYTES`) for a moment.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import nn

from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.core.state import leaves
from weft.models import ModelConfig
from weft.nn.families import families
from weft.training import TrainConfig

FLOAT = 4  # bytes; weights, gradients and moments are float32 whatever the forward pass is in
LARGEST_MEASURED = 96  # widths up to here are measured as they are
_MOMENTS = {"adam": 2, "adamw": 2, "rmsprop": 1, "sgd": 0}

Build = Callable[[ModelConfig], nn.Module]
Run = Callable[[nn.Module], Any]


class Taken(NamedTuple):
    """Bytes a batch takes: kept for the backward pass, and by the largest call without one."""

    kept: int
    working: int


def optimizer_numbers(config: TrainConfig) -> int:
    """Return how many numbers the optimizer (and a moving average) keeps for each weight."""
    momentum = config.optimizer in ("sgd", "rmsprop") and config.momentum > 0
    return _MOMENTS[config.optimizer] + momentum + (config.ema > 0)


def width_unit(config: ModelConfig) -> int:
    """Return what the width must be a multiple of."""
    return math.lcm(2, *(families[side.family].multiple(side.options) for side in config.sides.values()))


def small_width(config: ModelConfig, least: int) -> int:
    """Return the smallest allowed width from `least` on."""
    unit = width_unit(config)
    return unit * -(-least // unit)


def measure_batch(build: Build, config: ModelConfig, run: Run) -> Taken:
    """Measure what running a batch takes.

    Tensors grow as polynomials of the width, of degree 2 at most (a weight is width x width); so
    three small widths tell of any other, and a model that memory cannot hold is explained too.
    """
    width = config.common.width
    if width <= LARGEST_MEASURED:
        return _measure(build(config), run)
    least = small_width(config, LARGEST_MEASURED // 3)
    widths = (least, 2 * least, 3 * least)
    taken = [_measure(build(config.with_width(w)), run) for w in widths]
    return Taken(*(round(_quadratic(widths, values, width)) for values in zip(*taken, strict=True)))


def state_bytes(model: nn.Module, rows: int, steps: int) -> int:
    """Return the bytes of the state that a causal model carries from step to step; 0 without one."""
    backbone = next((m for name, m in model.named_modules() if name.endswith("backbone")), None)
    if backbone is None:
        return 0
    state: Any = backbone.init_state(rows, steps)  # type: ignore[operator]  # a Backbone
    return sum(leaf.numel() * leaf.element_size() for leaf in leaves(state))


def _measure(model: nn.Module, run: Run) -> Taken:
    kept: dict[int, Tensor] = {}
    own = {p.untyped_storage().data_ptr() for p in model.parameters()}

    def keep(x: Tensor) -> Tensor:
        place = x.untyped_storage().data_ptr()
        if place not in own:
            kept.setdefault(place, x)
        return x

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda x: x):
        result = run(model.train())
    size = sum(x.untyped_storage().nbytes() for x in kept.values())
    del result
    sizes = [0]
    with torch.no_grad(), _noting_sizes(model, sizes):
        run(model.eval())
    return Taken(size, max(sizes))


@contextmanager
def _noting_sizes(model: nn.Module, sizes: list[int]) -> Iterator[None]:
    """Note the bytes that go into and come out of every call."""

    def note(module: nn.Module, inputs: Any, output: Any) -> None:
        sizes.append(_bytes(inputs) + _bytes(output))

    handles = [module.register_forward_hook(note) for module in model.modules()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def _bytes(value: Any) -> int:
    if isinstance(value, Sequences):
        value = value.data
    if isinstance(value, Tensor):
        return value.numel() * value.element_size()
    return sum(map(_bytes, value)) if isinstance(value, tuple | list) else 0


def _quadratic(xs: tuple[int, int, int], ys: tuple[int, ...], x: int) -> float:
    """Return the value at x of the polynomial of degree 2 through three points."""
    total = 0.0
    for i, (x_i, y_i) in enumerate(zip(xs, ys, strict=True)):
        others = [x_j for j, x_j in enumerate(xs) if j != i]
        total += y_i * math.prod((x - x_j) / (x_i - x_j) for x_j in others)
    return total
