"""Attention over an encoded source: any score function, keys and values prepared once."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import nn

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences, length_mask
from weft.core.shapes import Float, Int, Tensor
from weft.core.taps import listening, tap
from weft.ops.attention import pool, pool_weights
from weft.ops.scores import ScoreParams, check_score, project_key, project_query

KINDS = ("none", "identity", "dot", "scaled_dot", "gaussian", "bilinear", "additive", "concat", "multihead")


class AttentionMemory(NamedTuple):
    """What the queries of one attention meet: projected once for a whole source."""

    keys: Float[Tensor, "B N S E"]
    values: Float[Tensor, "B N S F"]
    lengths: Int[Tensor, "B"]


def split_heads(x: Float[Tensor, "B T D"], heads: int) -> Float[Tensor, "B N T E"]:
    """Cut the width into heads."""
    return x.unflatten(2, (heads, -1)).transpose(1, 2)


def merge_heads(x: Float[Tensor, "B N T E"]) -> Float[Tensor, "B T D"]:
    """Lay the heads side by side."""
    return x.transpose(1, 2).flatten(2)


def check_heads(width: int, heads: int, name: str = "heads") -> None:
    """Refuse a width that the heads do not divide."""
    if width % heads:
        fits = next(n for n in range(heads, 0, -1) if width % n == 0)
        raise ConfigError(f"`{name}` must divide the width ({width}), but is {heads}. Try {fits}.")


class Attention(nn.Module):
    """Pool an encoded source by one of the score functions of `weft.ops.scores`, or by heads of them.

    multihead: scaled_dot in `heads` subspaces, concatenated, times an output projection. The other
    kinds have one head; `values` adds a learned value projection W_v to any but identity.
    """

    def __init__(self, kind: str, width: int, heads: int = 1, values: bool = False):
        super().__init__()
        self.kind, self.width, self.heads = kind, width, heads if kind == "multihead" else 1
        self.score = "scaled_dot" if kind == "multihead" else kind
        check_score(self.score)
        self.query: nn.Linear | None = None
        self.key: nn.Linear | None = None
        self.value: nn.Linear | None = None
        self.out: nn.Linear | None = None
        self.m: nn.Parameter | None = None
        self.w: nn.Parameter | None = None
        self.w_qk: nn.Parameter | None = None
        if kind == "multihead":
            check_heads(width, heads)
            self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        elif values and kind != "identity":
            self.value = nn.Linear(width, width, bias=False)
        self._make_score(kind, width)

    def _make_score(self, kind: str, width: int) -> None:
        if kind in ("dot", "scaled_dot", "gaussian", "additive"):
            self.query = nn.Linear(width, width, bias=False)
            self.key = nn.Linear(width, width, bias=False)
        if kind == "bilinear":
            self.m = nn.Parameter(torch.empty(width, width).normal_(std=1 / width))
        if kind == "concat":
            self.w_qk = nn.Parameter(torch.empty(width, 2 * width).uniform_(-1, 1) * (3 / width) ** 0.5)
        if kind in ("additive", "concat"):
            self.w = nn.Parameter(torch.empty(width).uniform_(-1, 1) * (3 / width) ** 0.5)

    def params(self) -> ScoreParams:
        """Return the score's parameters as the ops take them (heads have linear maps of their own)."""
        if self.kind == "multihead":
            return ScoreParams()
        weight = [None if layer is None else layer.weight for layer in (self.query, self.key)]
        return ScoreParams(weight[0], weight[1], self.w, self.m, self.w_qk)

    def prepare(self, encoded: Sequences) -> AttentionMemory:
        """Project a source (B, S, D) to keys and values."""
        source = encoded.fill(0).data
        keys = project_key(self._cut(self.key, source), self.score, self.params())
        values = source if self.value is None else self.value(source)
        return AttentionMemory(keys, split_heads(values, self.heads), encoded.lengths)

    def _cut(self, layer: nn.Linear | None, x: Float[Tensor, "B T D"]) -> Float[Tensor, "B N T E"]:
        """Cut into heads, after the layer where there are several (else the score has the matrices)."""
        mapped = layer(x) if layer is not None and self.kind == "multihead" else x
        return split_heads(mapped, self.heads)

    def forward(self, query: Float[Tensor, "B T D"], memory: AttentionMemory) -> Float[Tensor, "B T D"]:
        """Attend from every query; B = lanes * source rows, lane b to source row b // lanes."""
        (batch, steps, width), rows = query.shape, memory.keys.shape[0]
        lanes = batch // rows if rows else 0
        q = query.reshape(rows, lanes * steps, width)
        q = project_query(self._cut(self.query, q), self.score, self.params())
        mask = length_mask(memory.lengths, memory.keys.shape[2])[:, None, None]  # (rows, 1, 1, S)
        if listening():
            weights = pool_weights(q, memory.keys, self.score, self.w, mask)
            weights = weights.unflatten(2, (lanes, steps)).transpose(1, 2).flatten(0, 1)
            tap(weights, "cross_attention")  # (B, N, T, S)
        pooled = merge_heads(pool(q, memory.keys, memory.values, self.score, self.w, mask))
        pooled = pooled if self.out is None else self.out(pooled)
        return pooled.reshape(batch, steps, width)


class SourceReader(nn.Module):
    """Let outputs ask a source, and join each with the context it gets: tanh(W [y; c])."""

    def __init__(self, kind: str, width: int, heads: int = 1, values: bool = False):
        super().__init__()
        self.attention = Attention(kind, width, heads, values)
        self.readout = nn.Linear(2 * width, width)

    def prepare(self, encoded: Sequences) -> AttentionMemory:
        """Project a source's keys and values."""
        return self.attention.prepare(encoded)

    def ask(self, query: Float[Tensor, "B D"], memory: AttentionMemory) -> Float[Tensor, "B D"]:
        """Return the context of one query a row."""
        return self.attention(query.unsqueeze(1), memory).squeeze(1)

    def join(self, y: Float[Tensor, "*B D"], context: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        """Return tanh(W [y; c])."""
        return torch.tanh(self.readout(torch.cat([y, context], dim=-1)))

    def forward(self, y: Float[Tensor, "B T D"], memory: AttentionMemory) -> Float[Tensor, "B T D"]:
        """Ask with every output and join: all steps at once."""
        return self.join(y, self.attention(y, memory))
