"""The arithmetic of the forward pass: fp32, or half the bits under autocast."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch.optim import Optimizer

from weft.core.errors import ConfigError
from weft.core.shapes import Tensor

# The loss that is scaled is a sum over a batch, not a mean: thousands of times larger than what
# torch's own first scale (65536) is meant for.
FIRST_SCALE = 256.0


class Precision:
    """Autocast around the forward pass; in fp16 the loss is scaled so that small gradients survive."""

    def __init__(self, name: str, device: torch.device):
        if name == "fp16" and device.type != "cuda":
            raise ConfigError(
                f"`train.precision` fp16 needs a CUDA device, but the device is {device.type}. "
                "Try bf16 or fp32."
            )
        self._device = device
        self._dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(name)
        self._scaler = torch.amp.GradScaler(device.type, init_scale=FIRST_SCALE, enabled=name == "fp16")

    def autocast(self) -> AbstractContextManager[Any]:
        """Return the context the forward pass runs in."""
        if self._dtype is None:
            return nullcontext()
        return torch.autocast(self._device.type, self._dtype)

    def backward(self, loss: Tensor) -> None:
        """Add the gradient of `loss` to every parameter's."""
        self._scaler.scale(loss).backward()

    def unscale(self, optimizer: Optimizer) -> None:
        """Take the scale out of the gradients, before anybody measures them."""
        self._scaler.unscale_(optimizer)

    def step(self, optimizer: Optimizer) -> None:
        """Update the weights; in fp16 a step whose gradient overflowed is left out and the scale halved."""
        self._scaler.step(optimizer)
        self._scaler.update()

    def tolerates_overflow(self) -> bool:
        """Tell whether a non-finite gradient is the scale's doing, which a smaller scale mends."""
        return self._scaler.is_enabled() and self._scaler.get_scale() > 1.0

    def save(self) -> dict[str, Any]:
        return self._scaler.state_dict()

    def load(self, saved: dict[str, Any]) -> None:
        self._scaler.load_state_dict(saved)
