"""Floating-point operations of a batch, counted from the modules. A multiply-add is two.

matrix            2 |W| a position            (linear, head, convolution: |W| with all taps)
recurrent layer   2 (|W_ih| + |W_hh|) a step
attention         2 (T S D) for the scores and 2 (T S D) for the pooling
backward          as much again for the inputs, and as much again for the weights

What is linear in the width (norms, gates, activations, softmax, looking up embeddings) is left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from torch import nn

from weft.explain.observe import Works, pairs_of, work_of
from weft.models import Head
from weft.models.inputs import TokenInput
from weft.nn.attention import Attention
from weft.nn.families.tcn import WeightNormConv
from weft.nn.families.transformer import SelfAttention
from weft.nn.position import PositionEncoding


@dataclass(frozen=True)
class Flops:
    """Operations forward and backward."""

    forward: int = 0
    backward: int = 0

    @property
    def both(self) -> int:
        return self.forward + self.backward

    def __add__(self, other: Flops) -> Flops:
        return Flops(self.forward + other.forward, self.backward + other.backward)


def count_flops(model: nn.Module, works: Works) -> dict[str, Flops]:
    """Count every module's own operations, those of its children left to them."""
    return {name: _rule(module)(module, name, works) for name, module in model.named_modules()}


def _rule(module: nn.Module) -> Callable[[Any, str, Works], Flops]:
    """Return the rule of a type; one without its own multiplies its matrices with every position."""
    return next((_RULES[kind] for kind in type(module).__mro__ if kind in _RULES), _matrices)


def _matrices(module: nn.Module, name: str, works: Works) -> Flops:
    size = sum(p.numel() for p in module.parameters(recurse=False) if p.dim() > 1)
    work = work_of(name, works)
    back = work.back if name in works else work.positions  # inside a model everything has a gradient
    return Flops(2 * size * work.positions, 2 * size * (work.positions + back))


def _nothing(module: nn.Module, name: str, works: Works) -> Flops:
    return Flops()


def _twice(forward: int) -> Flops:
    return Flops(forward, 2 * forward)


def _head(module: Head, name: str, works: Works) -> Flops:
    """Count a head by what its dropout was given: `forward` and `loss` both begin there."""
    return _twice(2 * module.weight.numel() * work_of(f"{name}.dropout", works).positions)


def _weight_norm(module: WeightNormConv, name: str, works: Works) -> Flops:
    return _twice(2 * module.v.numel() * work_of(name, works).positions)


def _self_attention(module: SelfAttention, name: str, works: Works) -> Flops:
    return _twice(4 * module.query.in_features * pairs_of(name, works))


def _attention(module: Attention, name: str, works: Works) -> Flops:
    """Count scores and pooling, and the matrices a score has beside its layers."""
    work = work_of(name, works)
    forward = 4 * module.width * work.pairs
    if module.m is not None:
        forward += 2 * module.m.numel() * work.positions
    if module.w_qk is not None:
        keys = work_of(f"{name}.key", works).positions
        forward += module.w_qk.numel() * (work.positions + keys)  # W [q; k] = W_1 q + W_2 k
    return _twice(forward)


_RULES: dict[type, Callable[[Any, str, Works], Flops]] = {
    Attention: _attention,
    Head: _head,
    PositionEncoding: _nothing,
    SelfAttention: _self_attention,
    TokenInput: _nothing,
    WeightNormConv: _weight_norm,
    nn.Embedding: _nothing,
}
