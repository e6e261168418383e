"""The shape that tells how a numeric series goes on."""

from __future__ import annotations

from collections.abc import Callable

from torch import nn

from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor
from weft.models.shapes import PooledModel

Level = Callable[
    [Tensor], tuple[Tensor, Tensor | float]
]  # history -> what is taken off, what it is divided by

_LEAST = 1e-5  # added to a window's variance


def _nothing(history: Float[Tensor, "B H C"]) -> tuple[Tensor, float]:
    return history.new_zeros(()), 1.0


def _last(history: Float[Tensor, "B H C"]) -> tuple[Tensor, float]:
    return history[:, -1:], 1.0


def _window(history: Float[Tensor, "B H C"]) -> tuple[Tensor, Tensor]:
    deviation = (history.var(1, correction=0, keepdim=True) + _LEAST).sqrt()
    return history.mean(1, keepdim=True), deviation


LEVELS: dict[str, Level] = {"none": _nothing, "last": _last, "window": _window}


class ForecastModel(nn.Module):
    """Map a history (B, H, C) to the F steps that follow: y = m + s (network(z) + W z), z = (x - m) / s.

    network    reads z in patches of `patch` steps and tells all F steps from one vector
    separate   channels are told one by one, by the same network; otherwise all C at once
    normalise  m and s of each window: none (0, 1), last (its last value, 1), window (its mean and deviation)
    linear     W (F, H), the same for every channel, beside the network: what the network adds is a residual
    """

    def __init__(
        self,
        network: PooledModel,
        history: int,
        horizon: int,
        patch: int,
        separate: bool,
        normalise: str,
        linear: bool,
    ):
        super().__init__()
        self.network, self.horizon, self.patch, self.separate = network, horizon, patch, separate
        self.level = LEVELS[normalise]
        self.linear = nn.Linear(history, horizon) if linear else None

    def forward(self, history: Float[Tensor, "B H C"]) -> Float[Tensor, "B F C"]:
        centre, scale = self.level(history)
        z = (history - centre) / scale
        told = self._each(z) if self.separate else self._together(z)
        if self.linear is not None:
            told = told + self.linear(z.mT).mT
        return centre + scale * told

    def _each(self, z: Float[Tensor, "B H C"]) -> Float[Tensor, "B F C"]:
        """Read every channel as a row of its own."""
        channels = z.shape[2]
        told = self._together(z.mT.flatten(0, 1).unsqueeze(2))  # (B * C, F, 1)
        return told.squeeze(2).unflatten(0, (-1, channels)).mT

    def _together(self, z: Float[Tensor, "B H C"]) -> Float[Tensor, "B F C"]:
        patches = z.unflatten(1, (-1, self.patch)).flatten(2)  # (B, H / patch, patch * C)
        return self.network(Sequences.full(patches)).unflatten(1, (self.horizon, z.shape[2]))
