"""The temporal convolutional network (C1): dilated causal convolutions in residual blocks."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import nn

from weft import ops
from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.protocols import Backbone, Encoder
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor
from weft.nn.attention import SourceReader
from weft.nn.families.family import AttentionSpec, Family, families
from weft.nn.families.one_way import OneWayEncoder
from weft.nn.memory import SourceMemory
from weft.nn.stack import Stack
from weft.ops.blocks import keep_past, split_past, state_rows
from weft.ops.weights import ragged


@dataclass(frozen=True)
class TCNConfig:
    """Options of the tcn family."""

    layers: int = option(4, "residual blocks; block l is dilated by 2^l", low=1, high=14)
    kernel: int = option(3, "taps of each convolution", low=2)
    dropout: float = option(0.1, "dropout after each convolution", low=0, high=0.95)


class TCNState(NamedTuple):
    """The last inputs that each convolution can still see, (K-1) * dilation, one behind the other."""

    past: Float[Tensor, "B S D"]


class WeightNormConv(nn.Module):
    """A dilated convolution whose kernel is g * v / ||v||, one g an output channel."""

    def __init__(self, width: int, kernel: int, dilation: int):
        super().__init__()
        self.dilation, self.reach = dilation, (kernel - 1) * dilation
        self.v = nn.Parameter(torch.empty(width, width, kernel))
        self.bias = nn.Parameter(torch.zeros(width))
        nn.init.kaiming_uniform_(self.v, nonlinearity="relu")
        self.g = nn.Parameter(self.v.detach().norm(dim=(1, 2), keepdim=True))

    def weight(self) -> Float[Tensor, "D D K"]:
        """Return g * v / ||v||."""
        return torch._weight_norm(self.v, self.g, 0)

    def parts(self) -> ops.NormedKernel:
        """Return v, g and bias."""
        return ops.NormedKernel(self.v, self.g, self.bias)

    def forward(self, x: Float[Tensor, "B T D"], past: Tensor | None) -> Float[Tensor, "B T D"]:
        return ops.causal_conv(x, self.weight(), self.bias, self.dilation, past)


class TCNBlock(nn.Module):
    """Two convolutions, each with relu and dropout, and the residual: relu(x + F(x))."""

    def __init__(self, width: int, kernel: int, dilation: int, dropout: float):
        super().__init__()
        self.first = WeightNormConv(width, kernel, dilation)
        self.second = WeightNormConv(width, kernel, dilation)
        self.dropout = nn.Dropout(dropout)

    def forward(
        self, x: Float[Tensor, "B T D"], first_past: Tensor | None, second_past: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        """Return the block's output and the second convolution's input."""
        middle = self.dropout(torch.relu(self.first(x, first_past)))
        y = self.dropout(torch.relu(self.second(middle, second_past)))
        return torch.relu(x + y), middle


def receptive_field(layers: int, kernel: int) -> int:
    """Return how many steps an output sees: 1 + 2 (K-1) (2^L - 1)."""
    return 1 + 2 * (kernel - 1) * (2**layers - 1)


class TCNBackbone(nn.Module):
    """Residual blocks over the whole sequence at once, or one step at a time."""

    def __init__(self, width: int, config: TCNConfig, attention: AttentionSpec | None):
        super().__init__()
        self.width, self.dropout = width, config.dropout
        self.blocks = Stack(
            TCNBlock(width, config.kernel, 2**level, config.dropout) for level in range(config.layers)
        )
        self.reader: SourceReader | None = None
        if attention is not None and attention.kind != "none":
            self.reader = SourceReader(attention.kind, width, attention.heads, attention.values)

    def init_state(
        self, batch_size: int, capacity: int | None = None, memory: SourceMemory | None = None
    ) -> TCNState:
        """Return pasts of zeros."""
        first = self.blocks[0].first
        rows = state_rows(2 * len(self.blocks), first.v.shape[2])
        return TCNState(first.bias.new_zeros(batch_size, rows, self.width))

    def prepare(self, encoded: Sequences, summary: Float[Tensor, "B D"]) -> SourceMemory:
        """Project the source's keys and values once."""
        return SourceMemory(summary, () if self.reader is None else (self.reader.prepare(encoded),))

    def forward(
        self, x: Sequences, state: TCNState | None = None, memory: SourceMemory | None = None
    ) -> tuple[Sequences, TCNState]:
        weights = [conv.parts() for block in self.blocks for conv in (block.first, block.second)]
        if ops.can_fuse_blocks(x.data, weights):
            past, dropout = None if state is None else state.past, self.dropout if self.training else 0.0
            y, past = ops.residual_blocks(x.data, weights, dropout, past, x.lengths, backend="fused")
        else:
            y, past = self._block_by_block(x, self.init_state(x.batch_size) if state is None else state)
        if self.reader is not None and memory is not None:
            y = Sequences(self.reader(y, memory.attended[0]), x.lengths).fill(0).data
        return x.with_data(y), TCNState(past)

    def _block_by_block(self, x: Sequences, state: TCNState) -> tuple[Tensor, Tensor]:
        """Call the blocks as modules, which can be watched; return outputs and the new past."""
        y, kept, pasts = x.data, [], split_past(state.past, 2 * len(self.blocks))
        whole = not ragged(x.data, x.lengths)
        for block, first, second in zip(self.blocks, pasts[::2], pasts[1::2], strict=True):
            inputs, (y, middle) = y, block(y, first, second)
            kept += [keep_past(x.with_data(inputs), first, whole)]
            kept += [keep_past(x.with_data(middle), second, whole)]
        return y if whole else x.with_data(y).fill(0).data, torch.cat(kept, dim=1)

    def step(
        self, x_t: Float[Tensor, "B D"], state: TCNState, memory: SourceMemory | None = None
    ) -> tuple[Float[Tensor, "B D"], TCNState]:
        y, state = self.forward(Sequences.full(x_t.unsqueeze(1)), state, memory)
        return y.data[:, 0], state


class TCNEncoder(nn.Module):
    """The same blocks looking both ways: each convolution is centred."""

    def __init__(self, width: int, config: TCNConfig):
        super().__init__()
        if config.kernel % 2 == 0:
            raise ConfigError(
                f"`kernel` must be odd for a tcn that looks both ways, but is {config.kernel}. "
                f"Try {config.kernel + 1}."
            )
        self.blocks = Stack(
            TCNBlock(width, config.kernel, 2**level, config.dropout) for level in range(config.layers)
        )

    def forward(self, x: Sequences, memory: None = None) -> Sequences:
        for block in self.blocks:
            middle = x.with_data(block.dropout(torch.relu(self._centred(block.first, x)))).fill(0)
            y = block.dropout(torch.relu(self._centred(block.second, middle)))
            x = x.with_data(torch.relu(x.data + y)).fill(0)
        return x

    def summarise(self, encoded: Sequences) -> Float[Tensor, "B D"]:
        return encoded.mean()

    def _centred(self, conv: WeightNormConv, x: Sequences) -> Float[Tensor, "B T D"]:
        """Look half the reach ahead: run causally on an input that starts half a reach earlier."""
        ahead = conv.reach // 2
        padded = torch.nn.functional.pad(x.fill(0).data, (0, 0, 0, ahead))
        return conv(padded, None)[:, ahead:]


def backbone(width: int, config: TCNConfig, attention: AttentionSpec | None = None) -> Backbone:
    """Build causal blocks, with attention to a source after the last when given."""
    return TCNBackbone(width, config, attention)


def encoder(width: int, config: TCNConfig, bidirectional: bool = True) -> Encoder:
    """Build blocks that read whole sequences."""
    return TCNEncoder(width, config) if bidirectional else OneWayEncoder(backbone(width, config))


def _sees(config: TCNConfig) -> int:
    return receptive_field(config.layers, config.kernel)


families.register("tcn")(Family(TCNConfig, backbone, encoder, lambda config: 1, sees=_sees))
