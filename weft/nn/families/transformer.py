"""The Transformer (T1, T2): self-attention, cross-attention to a source, feed-forward, residuals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.protocols import Backbone, Encoder
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.taps import listening, scope, tap
from weft.nn.attention import Attention, check_heads, merge_heads, split_heads
from weft.nn.families.family import AttentionSpec, Family, families
from weft.nn.families.one_way import OneWayEncoder
from weft.nn.memory import SourceMemory
from weft.nn.position import KINDS as POSITIONS
from weft.nn.position import PositionEncoding
from weft.nn.stack import Stack
from weft.ops.attention import pool, pool_weights
from weft.ops.masks import combine, position_mask
from weft.ops.positions import rotate

_ROUND = 16  # a cache that grows grows by at least so many places; every step copies all of them


@dataclass(frozen=True)
class TransformerConfig:
    """Options of the transformer family."""

    layers: int = option(2, "Transformer layers", low=1, high=256)
    heads: int = option(4, "attention heads; they divide the width", low=1)
    feedforward: int | None = option(
        None, "width of the feed-forward part (default: 4 times the width)", low=1
    )
    dropout: float = option(0.1, "dropout on every residual branch", low=0, high=0.95)
    attention_dropout: float = option(0.0, "dropout on attention weights", low=0, high=0.95)
    norm: str = option("pre", "layer norm before or after each branch", choices=("pre", "post"))
    activation: str = option("relu", "activation of the feed-forward part", choices=("relu", "gelu"))
    positions: str = option("sinusoidal", "how positions are told", choices=POSITIONS)
    position_mode: str = option(
        "add", "positions added to or concatenated with the input", choices=("add", "concat")
    )
    max_positions: int = option(1024, "length that learned positions reach", low=1)
    neighbourhood: int | None = option(None, "self-attention sees at most so many steps away", low=0)


class KeyValues(NamedTuple):
    """One layer's past: places 0..position-1 of each row are written."""

    keys: Float[Tensor, "B N C E"]
    values: Float[Tensor, "B N C E"]


class TransformerState(NamedTuple):
    layers: tuple[KeyValues, ...]
    position: Int[Tensor, "B"]


class SelfAttention(nn.Module):
    """Multi-head attention of a sequence to itself."""

    def __init__(self, width: int, config: TransformerConfig):
        super().__init__()
        check_heads(width, config.heads)
        if config.positions == "rotary" and (width // config.heads) % 2:
            raise ConfigError(
                f"Rotary positions need heads of even width, but {width} / {config.heads} is "
                f"{width // config.heads}. Try `model.width` {2 * width} or other positions."
            )
        self.heads, self.rotary = config.heads, config.positions == "rotary"
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.dropout = config.attention_dropout

    def project(
        self, x: Float[Tensor, "B T D"], positions: Int[Tensor, "B T"]
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values (B, N, T, E), turned to their positions when rotary."""
        q, k, v = (split_heads(layer(x), self.heads) for layer in (self.query, self.key, self.value))
        return (rotate(q, positions), rotate(k, positions), v) if self.rotary else (q, k, v)

    def attend(
        self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool
    ) -> Float[Tensor, "B T D"]:
        """Pool the values: by the mask, or causally without one."""
        if listening():
            order = (
                torch.ones(q.shape[2], k.shape[2], dtype=torch.bool, device=q.device).tril()
                if causal
                else None
            )
            tap(pool_weights(q, k, "scaled_dot", None, combine(mask, order)), "self_attention")
        dropout = self.dropout if self.training else 0.0
        pooled = pool(q, k, v, "scaled_dot", None, mask, dropout, causal)
        return self.out(merge_heads(pooled))


class FeedForward(nn.Module):
    """W_2 phi(W_1 x), at each step by itself."""

    def __init__(self, width: int, config: TransformerConfig):
        super().__init__()
        inner = config.feedforward or 4 * width
        self.inner, self.outer = nn.Linear(width, inner), nn.Linear(inner, width)
        self.activation: Callable[[Tensor], Tensor] = torch.relu if config.activation == "relu" else nn.GELU()
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Float[Tensor, "*B D"]) -> Float[Tensor, "*B D"]:
        return self.outer(self.dropout(self.activation(self.inner(x))))


class Branch(nn.Module):
    """A residual connection around any function, with its norm: x + f(norm x), or norm(x + f(x))."""

    def __init__(self, width: int, config: TransformerConfig):
        super().__init__()
        self.norm, self.pre = nn.LayerNorm(width), config.norm == "pre"
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, function: Callable[[Tensor], Tensor]) -> Tensor:
        if self.pre:
            return x + self.dropout(function(self.norm(x)))
        return self.norm(x + self.dropout(function(x)))


class TransformerLayer(nn.Module):
    """Self-attention, attention to the source if there is one, feed-forward."""

    def __init__(self, width: int, config: TransformerConfig, attention: AttentionSpec | None = None):
        super().__init__()
        self.self_attention, self.self_branch = SelfAttention(width, config), Branch(width, config)
        self.feedforward, self.feedforward_branch = FeedForward(width, config), Branch(width, config)
        self.cross_attention: Attention | None = None
        self.cross_branch: Branch | None = None
        if attention is not None and attention.kind != "none":
            self.cross_attention = Attention(attention.kind, width, attention.heads, attention.values)
            self.cross_branch = Branch(width, config)

    def forward(
        self,
        x: Float[Tensor, "B T D"],
        look: Callable[[SelfAttention, Tensor], Tensor],
        memory: SourceMemory | None = None,
        index: int = 0,
    ) -> Float[Tensor, "B T D"]:
        """Apply the three branches; `look` runs the self-attention with its mask and cache."""
        x = self.self_branch(x, lambda y: look(self.self_attention, y))
        if self.cross_attention is not None and self.cross_branch is not None and memory is not None:
            attended, attention = memory.attended[index], self.cross_attention
            x = self.cross_branch(x, lambda y: attention(y, attended))
        return self.feedforward_branch(x, self.feedforward)


class TransformerBackbone(nn.Module):
    """Causal layers with a cache of keys and values; as a decoder, with attention to a source."""

    def __init__(self, width: int, config: TransformerConfig, attention: AttentionSpec | None):
        super().__init__()
        self.width, self.heads, self.neighbourhood = width, config.heads, config.neighbourhood
        self.position = PositionEncoding(config.positions, config.position_mode, width, config.max_positions)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Stack(TransformerLayer(width, config, attention) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()

    def init_state(
        self, batch_size: int, capacity: int | None = None, memory: SourceMemory | None = None
    ) -> TransformerState:
        """Return empty caches; they grow past `capacity` when they must."""
        like = self.layers[0].self_attention.query.weight
        empty = like.new_zeros(batch_size, self.heads, capacity or 0, self.width // self.heads)
        position = torch.zeros(batch_size, dtype=torch.int64, device=like.device)
        return TransformerState(tuple(KeyValues(empty, empty) for _ in self.layers), position)

    def prepare(self, encoded: Sequences, summary: Float[Tensor, "B D"]) -> SourceMemory:
        """Project the source's keys and values once for every layer."""
        attentions = [layer.cross_attention for layer in self.layers if layer.cross_attention is not None]
        return SourceMemory(summary, tuple(attention.prepare(encoded) for attention in attentions))

    def forward(
        self, x: Sequences, state: TransformerState | None = None, memory: SourceMemory | None = None
    ) -> tuple[Sequences, TransformerState]:
        start = x.lengths.new_zeros(x.batch_size) if state is None else state.position
        positions = _positions(start, x)
        y = self.dropout(self.position(x.fill(0).data, positions))
        places = 0 if state is None else _places_needed(start, x.max_length)
        caches: list[KeyValues] = []
        for index, layer in enumerate(self.layers):
            past = None if state is None else state.layers[index]

            def look(attention: SelfAttention, z: Tensor, past: KeyValues | None = past) -> Tensor:
                q, k, v = attention.project(z, positions)
                now = KeyValues(k, v) if past is None else _extend(past, k, v, start, places)
                caches.append(now)
                plain = past is None and self.neighbourhood is None
                mask = None if plain else self._mask(positions, now.keys.shape[2])
                return attention.attend(q, now.keys, now.values, mask, causal=plain)

            with scope(f"layer{index}"):
                y = layer(y, look, memory, index)
        return x.with_data(self.norm(y)).fill(0), TransformerState(tuple(caches), start + x.lengths)

    def step(
        self, x_t: Float[Tensor, "B D"], state: TransformerState, memory: SourceMemory | None = None
    ) -> tuple[Float[Tensor, "B D"], TransformerState]:
        y, state = self.forward(Sequences.full(x_t.unsqueeze(1)), state, memory)
        return y.data[:, 0], state

    def _mask(self, positions: Int[Tensor, "B T"], places: int) -> Tensor:
        """Return which places of the cache each step sees."""
        keys = torch.arange(places, device=positions.device)
        return position_mask(positions, keys, True, self.neighbourhood).unsqueeze(1)  # (B, 1, T, C)


def _positions(start: Int[Tensor, "B"], x: Sequences) -> Int[Tensor, "B T"]:
    """Return where each step stands; padded steps stand where their row ends."""
    steps = torch.arange(x.max_length, device=x.device)
    ends = (start + x.lengths - 1).clamp(min=0)
    return torch.minimum(start.unsqueeze(1) + steps, ends.unsqueeze(1))


def _places_needed(start: Int[Tensor, "B"], steps: int) -> int:
    """Return how many places a cache needs for so many more steps. Waits for a GPU, once a call."""
    return steps + (int(start.max()) if len(start) else 0)


def _extend(past: KeyValues, k: Tensor, v: Tensor, start: Int[Tensor, "B"], needed: int) -> KeyValues:
    """Write keys and values behind each row's past.

    Padded steps are written too: they lie behind the row's position, where nobody looks and the
    next ones are written over them.
    """
    steps, room = k.shape[2], past.keys.shape[2]
    if needed > room:
        grow = (0, 0, 0, max(_ROUND, needed - room))
        past = KeyValues(*(torch.nn.functional.pad(leaf, grow) for leaf in past))
    places = start.unsqueeze(1) + torch.arange(steps, device=k.device)  # (B, T)
    index = places[:, None, :, None].expand_as(k)  # (B, N, T, E)
    keys, values = past.keys.to(k.dtype), past.values.to(v.dtype)  # under autocast they may differ
    return KeyValues(keys.scatter(2, index, k), values.scatter(2, index, v))


class TransformerEncoder(nn.Module):
    """Layers in which every step sees every valid step."""

    def __init__(self, width: int, config: TransformerConfig):
        super().__init__()
        self.neighbourhood = config.neighbourhood
        self.position = PositionEncoding(config.positions, config.position_mode, width, config.max_positions)
        self.dropout = nn.Dropout(config.dropout)
        self.layers = Stack(TransformerLayer(width, config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(width) if config.norm == "pre" else nn.Identity()

    def forward(self, x: Sequences, memory: None = None) -> Sequences:
        steps = torch.arange(x.max_length, device=x.device)
        positions = steps.expand(x.batch_size, -1)
        near = None
        if self.neighbourhood is not None:
            near = position_mask(steps, steps, False, self.neighbourhood)
        mask = combine(x.mask()[:, None, None], near)  # (B, 1, 1 or T, T)

        def look(attention: SelfAttention, z: Tensor) -> Tensor:
            return attention.attend(*attention.project(z, positions), mask, causal=False)

        y = self.dropout(self.position(x.fill(0).data, positions))
        for index, layer in enumerate(self.layers):
            with scope(f"layer{index}"):
                y = layer(y, look)
        return x.with_data(self.norm(y)).fill(0)

    def summarise(self, encoded: Sequences) -> Float[Tensor, "B D"]:
        return encoded.mean()


def backbone(width: int, config: TransformerConfig, attention: AttentionSpec | None = None) -> Backbone:
    """Build causal layers, with attention to a source in each when given."""
    return TransformerBackbone(width, config, attention)


def encoder(width: int, config: TransformerConfig, bidirectional: bool = True) -> Encoder:
    """Build layers that read whole sequences."""
    return TransformerEncoder(width, config) if bidirectional else OneWayEncoder(backbone(width, config))


families.register("transformer")(
    Family(
        TransformerConfig, backbone, encoder, lambda config: 2 * config.heads, "feedforward", streams=False
    )
)
