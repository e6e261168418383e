"""Stacks of recurrent layers: what rnn, lstm and gru share. A layer knows only its own equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import torch
from torch import nn

from weft import ops
from weft.core.config import option
from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State, where_rows
from weft.nn.attention import AttentionMemory, SourceReader
from weft.nn.dropout import Dropout, apply_mask, mask_at
from weft.nn.families.family import AttentionSpec
from weft.nn.memory import SourceMemory, lane_summary
from weft.nn.stack import Stack
from weft.ops.weights import RecurrentWeights


@dataclass(frozen=True)
class StackConfig:
    """Options of every stack of recurrent layers."""

    layers: int = option(2, "recurrent layers", low=1, high=256)
    dropout: float = option(0.1, "dropout between layers", low=0, high=0.95)
    locked: bool = option(False, "draw dropout once a row instead of once a step (variational)")
    residual: bool = option(False, "add each layer's input to its output, from the second layer on")
    feed: str = option(
        "step",
        "where a decoder's context enters: the step itself (sequential) or its output (fast)",
        choices=("step", "output"),
    )


@dataclass(frozen=True)
class RecurrentConfig(StackConfig):
    """Options of layers with a recurrent matrix."""

    weight_dropout: float = option(0.0, "dropout on the recurrent matrices", low=0, high=0.95)
    init: str = option(
        "orthogonal", "initial recurrent matrices", choices=("orthogonal", "identity", "uniform")
    )


class RecurrentLayer(Protocol):
    """One layer in one direction.

    draw_weights  what `run` and `step` are handed back: drawn once a pass, so that all steps share it
    run           all steps: finished rows (t >= lengths) keep their state and give zeros; `reverse`
                  reads from each row's last valid step to the first
    begin         the state after an output h: output(begin(h)) = h
    output        the state's last output, which asks the source under feed=step
    """

    def draw_weights(self) -> Any: ...

    def run(
        self, x: Tensor, w: Any, state: State, lengths: Tensor | None, reverse: bool
    ) -> tuple[Tensor, State]: ...

    def step(self, x_t: Tensor, w: Any, state: State) -> tuple[Tensor, State]: ...

    def begin(self, h: Float[Tensor, "B U"]) -> State: ...

    def output(self, state: State) -> Float[Tensor, "B U"]: ...


MakeLayer = Callable[[int, int], Any]  # (input width, hidden units) -> RecurrentLayer and nn.Module


class RecurrentState(NamedTuple):
    """One entry a layer: h for rnn and gru, (h, c) for lstm."""

    layers: tuple[State, ...]


class RecurrentParameters(nn.Module):
    """The matrices and biases of one layer and direction, in torch's layout and names."""

    def __init__(self, inputs: int, units: int, gates: int, init: str, dropout: float):
        super().__init__()
        self.weight_ih = nn.Parameter(torch.empty(gates * units, inputs))
        self.weight_hh = nn.Parameter(torch.empty(gates * units, units))
        self.bias_ih = nn.Parameter(torch.zeros(gates * units))
        self.bias_hh = nn.Parameter(torch.zeros(gates * units))
        self.dropout = dropout
        for gate in self.weight_ih.data.chunk(gates):
            nn.init.xavier_uniform_(gate)
        for gate in self.weight_hh.data.chunk(gates):
            _init_recurrent(gate, init)

    def draw(self) -> RecurrentWeights:
        """Return the weights, the recurrent matrix with one draw of its dropout."""
        w_hh = torch.nn.functional.dropout(self.weight_hh, self.dropout, self.training)
        return RecurrentWeights(self.weight_ih, w_hh, self.bias_ih, self.bias_hh)


def _init_recurrent(matrix: Tensor, init: str) -> None:
    if init == "orthogonal":
        nn.init.orthogonal_(matrix)
    elif init == "identity":
        nn.init.eye_(matrix)
    else:
        nn.init.uniform_(matrix, -(matrix.shape[1] ** -0.5), matrix.shape[1] ** -0.5)


class RecurrentBackbone(nn.Module):
    """Recurrent layers of one width, one after the other; as a decoder, with attention to a source.

    feed=step    the top state before the step asks; the context enters the step and the output
    feed=output  each output asks; the context enters the output only, so all steps run at once
    """

    def __init__(
        self, make_layer: MakeLayer, width: int, config: StackConfig, attention: AttentionSpec | None
    ):
        super().__init__()
        self.width, self.residual = width, config.residual
        self.reader: SourceReader | None = None
        if attention is not None and attention.kind != "none":
            self.reader = SourceReader(attention.kind, width, attention.heads, attention.values)
        self.steps_ask = self.reader is not None and config.feed == "step"
        first = 2 * width if self.steps_ask else width
        self.layers = Stack(make_layer(width if i else first, width) for i in range(config.layers))
        self.dropout = Dropout(config.dropout, config.locked)
        bridges = 0 if attention is None else config.layers
        self.bridges = Stack(nn.Linear(width, width) for _ in range(bridges))

    def init_state(
        self, batch_size: int, capacity: int | None = None, memory: SourceMemory | None = None
    ) -> RecurrentState:
        """Return zeros; for a decoder tanh(W s) of the source's summary s."""
        if memory is not None and len(self.bridges):
            summary = lane_summary(memory, batch_size)
            starts = [torch.tanh(bridge(summary)) for bridge in self.bridges]
        else:
            zeros = next(iter(self.parameters())).new_zeros(batch_size, self.width)
            starts = [zeros for _ in self.layers]
        return RecurrentState(tuple(layer.begin(h) for layer, h in zip(self.layers, starts, strict=True)))

    def prepare(self, encoded: Sequences, summary: Float[Tensor, "B D"]) -> SourceMemory:
        """Project the source's keys and values once."""
        return SourceMemory(summary, () if self.reader is None else (self.reader.prepare(encoded),))

    def forward(
        self, x: Sequences, state: RecurrentState | None = None, memory: SourceMemory | None = None
    ) -> tuple[Sequences, RecurrentState]:
        state = self.init_state(x.batch_size, memory=memory) if state is None else state
        if self.reader is None or memory is None:
            y, state = self._run(x, state)
        elif self.steps_ask:
            y, state = self._run_asking(x, state, self.reader, memory.attended[0])
        else:
            y, state = self._run(x, state)
            y = self.reader(y, memory.attended[0])
        return x.with_data(y).fill(0), state

    def step(
        self, x_t: Float[Tensor, "B D"], state: RecurrentState, memory: SourceMemory | None = None
    ) -> tuple[Float[Tensor, "B D"], RecurrentState]:
        weights = [layer.draw_weights() for layer in self.layers]
        no_masks = [None for _ in self.layers]
        if self.reader is None or memory is None:
            return self._step(x_t, state, weights, no_masks)
        attended = memory.attended[0]
        if not self.steps_ask:
            y, state = self._step(x_t, state, weights, no_masks)
            return self.reader.join(y, self.reader.ask(y, attended)), state
        context = self.reader.ask(self._top(state), attended)
        y, state = self._step(torch.cat([x_t, context], dim=1), state, weights, no_masks)
        return self.reader.join(y, context), state

    def _top(self, state: RecurrentState) -> Float[Tensor, "B U"]:
        """Return the output of the last layer's state: the query of feed=step."""
        return self.layers[-1].output(state.layers[-1])

    def _run(self, x: Sequences, state: RecurrentState) -> tuple[Tensor, RecurrentState]:
        """Run layer by layer, all steps at once."""
        y, finals = x.data, []
        for i, (layer, start) in enumerate(zip(self.layers, state.layers, strict=True)):
            inputs = y if i == 0 else self.dropout(y)
            y, final = layer.run(inputs, layer.draw_weights(), start, x.lengths, False)
            y = y + inputs if self.residual and i else y
            finals.append(final)
        return y, RecurrentState(tuple(finals))

    def _run_asking(
        self, x: Sequences, state: RecurrentState, reader: SourceReader, attended: AttentionMemory
    ) -> tuple[Tensor, RecurrentState]:
        """Run step by step, every step asking the source first."""
        weights = [layer.draw_weights() for layer in self.layers]
        masks = [None] + [self.dropout.draw(x.data) for _ in range(1, len(self.layers))]
        valid, outputs, contexts = x.mask(), [x.data[:, :0]], [x.data[:, :0]]
        for t in range(x.max_length):
            context = reader.ask(self._top(state), attended)
            x_t = torch.cat([x.data[:, t], context], dim=1)
            y, new = self._step(x_t, state, weights, [mask_at(mask, t) for mask in masks])
            state = where_rows(valid[:, t], new, state)
            outputs.append(y.unsqueeze(1))
            contexts.append(context.unsqueeze(1))
        return reader.join(torch.cat(outputs, dim=1), torch.cat(contexts, dim=1)), state

    def _step(
        self,
        x_t: Tensor,
        state: RecurrentState,
        weights: Sequence[Any],
        masks: Sequence[Tensor | None],
    ) -> tuple[Tensor, RecurrentState]:
        """Take one step of every layer."""
        y, finals = x_t, []
        for i, layer in enumerate(self.layers):
            inputs = apply_mask(y, masks[i])
            y, final = layer.step(inputs, weights[i], state.layers[i])
            y = y + inputs if self.residual and i else y
            finals.append(final)
        return y, RecurrentState(tuple(finals))


class BidirectionalEncoder(nn.Module):
    """Recurrent layers that read both ways; each direction has half the width.

    cell  the name by which `ops.recurrent_layer` knows the layers; it may run both directions side by side
    """

    def __init__(self, make_layer: MakeLayer, width: int, config: StackConfig, cell: str | None = None):
        super().__init__()
        if width < 2:
            raise ConfigError(
                f"`width` must be at least 2 for a network that reads both ways, but is {width}."
            )
        self.ahead, self.back = width - width // 2, width // 2
        self.residual, self.cell = config.residual, cell
        self.forwards = Stack(make_layer(width, self.ahead) for _ in range(config.layers))
        self.backwards = Stack(make_layer(width, self.back) for _ in range(config.layers))
        self.dropout = Dropout(config.dropout, config.locked)

    def forward(self, x: Sequences, memory: None = None) -> Sequences:
        y = x.data
        for i, pair in enumerate(zip(self.forwards, self.backwards, strict=True)):
            inputs = y if i == 0 else self.dropout(y)
            y = self._read_both(pair, inputs, x.lengths)
            y = y + inputs if self.residual and i else y
        return x.with_data(y).fill(0)

    def summarise(self, encoded: Sequences) -> Float[Tensor, "B D"]:
        """Return both ends: the last valid output forwards, the first one backwards."""
        first = encoded.at(torch.where(encoded.lengths > 0, 0, -1))
        return torch.cat([encoded.last()[:, : self.ahead], first[:, self.ahead :]], dim=1)

    def _read_both(self, pair: Sequence[Any], x: Tensor, lengths: Int[Tensor, "B"]) -> Float[Tensor, "B T D"]:
        if self.cell is None:
            return torch.cat([self._read(layer, x, lengths, d == 1) for d, layer in enumerate(pair)], dim=2)
        weights = [layer.draw_weights() for layer in pair]
        return ops.recurrent_layer(self.cell, x, weights, lengths=lengths)[0]

    def _read(self, layer: Any, x: Tensor, lengths: Int[Tensor, "B"], reverse: bool) -> Tensor:
        start = layer.begin(x.new_zeros(x.shape[0], self.back if reverse else self.ahead))
        return layer.run(x, layer.draw_weights(), start, lengths, reverse)[0]
