"""The generators that dropout and its kin draw from, as something to save."""

from __future__ import annotations

import torch

from weft.core.rng import derive
from weft.core.shapes import Tensor


class Chance:
    """Torch's own generators: the CPU's, and that of the training's GPU."""

    def __init__(self, seed: int, device: torch.device):
        self._cuda = device if device.type == "cuda" else None
        torch.manual_seed(derive(seed, "training"))

    def save(self) -> dict[str, Tensor]:
        states = {"cpu": torch.get_rng_state()}
        return states | ({"cuda": torch.cuda.get_rng_state(self._cuda)} if self._cuda else {})

    def load(self, saved: dict[str, Tensor]) -> None:
        torch.set_rng_state(saved["cpu"])
        if self._cuda and "cuda" in saved:
            torch.cuda.set_rng_state(saved["cuda"], self._cuda)
