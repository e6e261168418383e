"""Drop-in layers: torch.nn's constructor, call and state_dict, plus `lengths=`.

lstm = weft.nn.LSTM(512, 512, num_layers=2, batch_first=True)
y, (h, c) = lstm(x, lengths=n)       # finished rows freeze; outputs at padding are zero
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

from weft import ops
from weft.core.errors import ConfigError
from weft.core.shapes import Int, Tensor
from weft.ops.fused import has_kernels
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


def _is_torchs(inputs: Any, lengths: Tensor | None, packs: bool = True) -> bool:
    """Tell whether torch's own layer is as good: no lengths, no kernel of weft's, nothing it cannot map.

    Of a packed batch it works out no padding, but with gradients, and for an LSTM (`packs` is off), it
    takes longer than the padded batch does.
    """
    if isinstance(inputs, PackedSequence):
        return packs and inputs.data.is_cpu and not torch.is_grad_enabled()
    return lengths is None and not has_kernels(inputs) and not torch._C._are_functorch_transforms_active()


def _forward(layer: nn.RNNBase, cell: str, inputs: Any, hx: Any, lengths: Tensor | None) -> tuple[Any, Any]:
    """Bring any accepted input to a padded batch, run it, and give outputs and states back in kind."""
    if isinstance(inputs, PackedSequence):
        x, sizes = pad_packed_sequence(inputs, layer.batch_first)
        y, final = _forward_padded(layer, cell, x, hx, sizes.to(x.device))
        presorted = inputs.unsorted_indices is None
        return pack_padded_sequence(y, sizes, layer.batch_first, enforce_sorted=presorted), final
    if inputs.dim() == 2:
        row = 0 if layer.batch_first else 1
        hx = _each(lambda leaf: leaf.unsqueeze(1), hx)
        y, final = _forward_padded(layer, cell, inputs.unsqueeze(row), hx, lengths)
        return y.squeeze(row), _each(lambda leaf: leaf.squeeze(1), final)
    return _forward_padded(layer, cell, inputs, hx, lengths)


def _forward_padded(
    layer: nn.RNNBase, cell: str, x: Tensor, hx: Any, lengths: Tensor | None
) -> tuple[Tensor, Any]:
    """Check what torch checks, in its words, and run the stack batch first."""
    if hx is None:
        layer.check_input(x, None)
        states = [None] * (layer.num_layers * (2 if layer.bidirectional else 1))
    else:
        layer.check_forward_args(x, hx, None)
        states = list(zip(*hx, strict=True)) if cell == "lstm" else list(hx)
    y, finals = _run_stack(layer, cell, x if layer.batch_first else x.transpose(0, 1), states, lengths)
    final = tuple(map(torch.stack, zip(*finals, strict=True))) if cell == "lstm" else torch.stack(finals)
    return (y if layer.batch_first else y.transpose(0, 1)), final


def _each(change: Callable[[Tensor], Tensor], hx: Any) -> Any:
    """Change every leaf of torch's state: None, h, or (h, c)."""
    if hx is None or isinstance(hx, torch.Tensor):
        return hx if hx is None else change(hx)
    return tuple(map(change, hx))


class RNN(nn.RNN):
    """torch.nn.RNN with `lengths=`."""

    def forward(
        self, input: Any, hx: Tensor | None = None, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Any, Tensor]:
        if _is_torchs(input, lengths):
            return super().forward(input, hx)
        return _forward(self, self.nonlinearity, input, hx, lengths)


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
        if self.reset == "after" and _is_torchs(input, lengths):
            return super().forward(input, hx)
        return _forward(self, f"gru_{self.reset}", input, hx, lengths)

    def extra_repr(self) -> str:
        return f"{super().extra_repr()}, reset={self.reset}"


class LSTM(nn.LSTM):
    """torch.nn.LSTM with `lengths=`."""

    def forward(
        self, input: Any, hx: tuple[Tensor, Tensor] | None = None, lengths: Int[Tensor, "B"] | None = None
    ) -> tuple[Any, tuple[Tensor, Tensor]]:
        if _is_torchs(input, lengths, packs=False):
            return super().forward(input, hx)
        if self.proj_size:
            return self._forward_projected(input, hx, lengths)
        return _forward(self, "lstm", input, hx, lengths)

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
