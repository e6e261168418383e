"""Drop-in layers: torch.nn's constructor, call and state_dict, plus `lengths=`.

lstm = weft.nn.LSTM(512, 512, num_layers=2, batch_first=True)
y, (h, c) = lstm(x, lengths=n)       # finished rows freeze; outputs at padding are zero
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from weft import ops
from weft.core.errors import ConfigError
from weft.core.shapes import Int, Tensor
from weft.ops.gru import RESETS
from weft.ops.weights import RecurrentWeights


def _layer_weights(layer: nn.RNNBase, index: int, reverse: bool) -> RecurrentWeights:
    suffix = f"_l{index}{'_reverse' if reverse else ''}"
    names = ["weight_ih", "weight_hh"] + (["bias_ih", "bias_hh"] if layer.bias else [])
    return RecurrentWeights(*(getattr(layer, name + suffix) for name in names))


def _run_stack(
    layer: nn.RNNBase, cell: str, x: Tensor, states: list[Any], lengths: Tensor | None
) -> tuple[Tensor, list[Any]]:
    """Run layer upon layer."""
    finals: list[Any] = []
    ways = (False, True) if layer.bidirectional else (False,)
    for index in range(layer.num_layers):
        if index and layer.dropout:
            x = torch.nn.functional.dropout(x, layer.dropout, layer.training)
        weights = [_layer_weights(layer, index, reverse) for reverse in ways]
        mine = states[index * len(ways) : (index + 1) * len(ways)]
        x, final = ops.recurrent_layer(cell, x, weights, mine, lengths)
        finals += final
    return x, finals


def _forward(
    layer: nn.RNNBase, cell: str, inputs: Any, state: Any, lengths: Tensor | None
) -> tuple[Any, Any]:
    """Bring any accepted input to (B, T, D) with lengths, run the stack, and give it back in kind.

    `state` is a list with one entry a layer and direction, or None.
    """
    states = state or [None] * (layer.num_layers * (2 if layer.bidirectional else 1))
    if isinstance(inputs, PackedSequence):
        x, sizes = pad_packed_sequence(inputs, batch_first=True)
        y, finals = _run_stack(layer, cell, x, states, sizes.to(x.device))
        presorted = inputs.unsorted_indices is None
        return pack_padded_sequence(y, sizes, batch_first=True, enforce_sorted=presorted), finals
    if inputs.dim() == 2:
        y, finals = _run_stack(layer, cell, inputs.unsqueeze(0), states, lengths)
        return y.squeeze(0), finals
    x = inputs if layer.batch_first else inputs.transpose(0, 1)
    y, finals = _run_stack(layer, cell, x, states, lengths)
    return (y if layer.batch_first else y.transpose(0, 1)), finals


def _unstack(state: Tensor | None) -> list[Tensor] | None:
    """Cut torch's (layers * directions, B, U), or (layers * directions, U), into a list of (B, U)."""
    if state is None:
        return None
    return list((state if state.dim() == 3 else state.unsqueeze(1)).unbind(0))


def _stack(states: list[Tensor], inputs: Any) -> Tensor:
    stacked = torch.stack(states)
    single = not isinstance(inputs, PackedSequence) and inputs.dim() == 2
    return stacked.squeeze(1) if single else stacked


class RNN(nn.RNN):
    """torch.nn.RNN with `lengths=`."""

    def forward(
        self, input: Any, hx: Tensor | None = None, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Any, Tensor]:
        y, finals = _forward(self, self.nonlinearity, input, _unstack(hx), lengths)
        return y, _stack(finals, input)


class GRU(nn.GRU):
    """torch.nn.GRU with `lengths=` and `reset`: "after" (torch, cuDNN) or "before" (the lectures)."""

    def __init__(self, *args: Any, reset: str = "after", **kwargs: Any):
        super().__init__(*args, **kwargs)
        if reset not in RESETS:
            raise ConfigError(
                f"`reset` must be `after` (torch) or `before` (the lectures), but is `{reset}`."
            )
        self.reset = reset

    def forward(
        self, input: Any, hx: Tensor | None = None, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Any, Tensor]:
        y, finals = _forward(self, f"gru_{self.reset}", input, _unstack(hx), lengths)
        return y, _stack(finals, input)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, reset={self.reset}"


class LSTM(nn.LSTM):
    """torch.nn.LSTM with `lengths=`."""

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        if self.proj_size:
            return self._forward_projected(input, hx, lengths)
        states = None if hx is None else list(zip(_unstack(hx[0]) or [], _unstack(hx[1]) or [], strict=True))
        y, finals = _forward(self, "lstm", input, states, lengths)
        return y, (_stack([h for h, _ in finals], input), _stack([c for _, c in finals], input))

    def _forward_projected(self, input: Any, hx: Any, lengths: Tensor | None) -> tuple[Any, Any]:
        """Leave layers with proj_size to torch, packing where lengths are given."""
        if lengths is None or isinstance(input, PackedSequence):
            return super().forward(input, hx)
        at_least_one = lengths.clamp(min=1).cpu()  # packing knows no empty row
        packed = pack_padded_sequence(input, at_least_one, self.batch_first, enforce_sorted=False)
        y, final = super().forward(packed, hx)
        size = input.shape[1 if self.batch_first else 0]
        y = pad_packed_sequence(y, self.batch_first, total_length=size)[0]
        empty = (lengths == 0).unsqueeze(1)  # (B, 1)
        begin = hx or tuple(torch.zeros_like(leaf) for leaf in final)
        final = tuple(torch.where(empty, old, new) for old, new in zip(begin, final, strict=True))
        return y.masked_fill(empty.unsqueeze(1 if self.batch_first else 0), 0), final
