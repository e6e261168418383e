"""Additive attention against the same equation, eager and compiled."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import torch
from torch import nn

from weft import ops
from weft.bench.case import Case, Side, Sides, compiled
from weft.core.shapes import Tensor
from weft.ops.scores import ScoreParams

INPUTS = 512  # width of queries, keys and values


class Form(NamedTuple):
    """What is attended to by how many."""

    batch: int
    queries: int
    keys: int
    width: int  # of the score
    ragged: bool = False  # lengths from half to all of the keys
    ready: bool = False  # keys already projected, as a decoder meets them at each step

    @property
    def name(self) -> str:
        kind = " ragged" * self.ragged + " keys projected" * self.ready
        return f"additive B{self.batch} {self.queries}×{self.keys} width {self.width}{kind}"


FORMS = {
    "cuda": [
        Form(64, 64, 64, 512),
        Form(64, 256, 256, 512),
        Form(16, 1024, 1024, 256),
        Form(64, 256, 256, 512, ragged=True),
        Form(64, 1, 256, 512, ragged=True, ready=True),
    ],
    "cpu": [Form(8, 64, 64, 128)],
    "quick": [Form(2, 5, 7, 8), Form(2, 1, 7, 8, ragged=True, ready=True)],
}
DTYPES = {"cuda": ("bf16",), "cpu": ("fp32",), "quick": ("fp32",)}


class Score(nn.Module):
    """The matrices and the vector of an additive score."""

    def __init__(self, inputs: int, width: int, ready: bool):
        super().__init__()
        self.w_q = nn.Parameter(torch.randn(width, inputs) * inputs**-0.5)
        self.w_k = None if ready else nn.Parameter(torch.randn(width, inputs) * inputs**-0.5)
        self.w = nn.Parameter(torch.randn(width) * width**-0.5)

    def params(self) -> ScoreParams:
        return ScoreParams(self.w_q, self.w_k, self.w)


def cases(scale: str) -> Iterator[Case]:
    """Yield the cases for "cuda", "cpu" or "quick"."""
    inputs = 8 if scale == "quick" else INPUTS
    for form in FORMS[scale]:
        headline = not form.ragged
        for dtype in DTYPES[scale]:
            yield Case(
                form.name,
                dtype,
                partial(_draw, form, inputs),
                partial(_sides, form, inputs),
                headline=headline,
            )


def _draw(form: Form, inputs: int) -> tuple[Tensor, ...]:
    sizes = [(form.queries, inputs), (form.keys, form.width if form.ready else inputs), (form.keys, inputs)]
    drawn = tuple(torch.randn(form.batch, *size) for size in sizes)
    lengths = torch.randint(form.keys // 2, form.keys + 1, (form.batch,))
    return (*drawn, lengths) if form.ragged else drawn


def _sides(form: Form, inputs: int, device: torch.device) -> Sides:
    score = Score(inputs, form.width, form.ready)
    timed = [_side("weft", score, ops.attend), _side("eager", copy.deepcopy(score), _plain)]
    if device.type == "cuda":
        timed.append(_side("torch.compile", copy.deepcopy(score), compiled(_plain)))
    return Sides(timed, _side("reference", copy.deepcopy(score), _plain))


def _plain(
    q: Tensor, k: Tensor, v: Tensor, score: str, params: ScoreParams, lengths: Tensor | None
) -> Tensor:
    return ops.attend(q, k, v, score, params, lengths, backend="reference")


def _side(name: str, score: Score, attend: Callable[..., Tensor]) -> Side:
    def call(q: Tensor, k: Tensor, v: Tensor, lengths: Tensor | None = None) -> tuple[Tensor, ...]:
        return (attend(q, k, v, "additive", score.params(), lengths),)

    return Side(name, score, call)
