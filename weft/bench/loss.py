"""Label-smoothed cross-entropy with the output projection, against logits held whole, eager and compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial

import torch
from torch import nn

from weft import ops
from weft.bench.case import Case, Side, Sides, compiled
from weft.core.shapes import Tensor
from weft.ops.loss import IGNORE

SHAPES = {  # tokens, width, vocabulary
    "cuda": [(25_600, 512, 37_000)],
    "cpu": [(512, 256, 8_000)],
    "quick": [(9, 8, 11)],
}
DTYPES = {"cuda": ("bf16",), "cpu": ("fp32",), "quick": ("fp32",)}
SMOOTHING = 0.1


def cases(scale: str) -> Iterator[Case]:
    """Yield the cases for "cuda", "cpu" or "quick"."""
    for tokens, width, words in SHAPES[scale]:
        for dtype in DTYPES[scale]:
            draw = partial(_draw, tokens, width, words)
            name = f"cross-entropy {tokens:,}×{width}×{words:,}"
            yield Case(name, dtype, draw, partial(_sides, width, words), headline=True)


def _draw(tokens: int, width: int, words: int) -> tuple[Tensor, ...]:
    """Draw hidden states and targets, one in ten ignored."""
    target = torch.randint(words, (tokens,))
    target[::10] = IGNORE
    return torch.randn(tokens, width), target


def _sides(width: int, words: int, device: torch.device) -> Sides:
    output = nn.Linear(width, words)
    timed = [_side("weft", output, ops.cross_entropy), _side("plain", copy.deepcopy(output), _plain)]
    if device.type == "cuda":
        timed.append(_side("torch.compile", copy.deepcopy(output), compiled(_plain)))
    reference = partial(ops.cross_entropy, backend="reference")
    return Sides(timed, _side("reference", copy.deepcopy(output), reference))


def _plain(
    hidden: Tensor, weight: Tensor, bias: Tensor, target: Tensor, smoothing: float
) -> tuple[Tensor, ...]:
    """Return the sum of losses of logits that torch holds whole, in float32."""
    logits = nn.functional.linear(hidden, weight, bias).float()
    total = nn.functional.cross_entropy(
        logits, target, ignore_index=IGNORE, reduction="sum", label_smoothing=smoothing
    )
    return (total,)


def _side(name: str, output: nn.Linear, loss: Callable[..., tuple[Tensor, ...]]) -> Side:
    def call(hidden: Tensor, target: Tensor) -> tuple[Tensor, ...]:
        return (loss(hidden, output.weight, output.bias, target, SMOOTHING)[0],)

    return Side(name, output, call)
