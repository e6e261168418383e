"""Curves for TensorBoard, where asked for."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

_NO_CURVES = ("step", "epoch", "split", "seconds")


class Board:
    """Writes each number of a row as `split/name`; without a folder it writes nothing.

    The folder is made for the first row: a training refused before leaves none.
    """

    def __init__(self, folder: Path | None):
        self._folder = folder
        self._writer: Any = None

    def write(self, row: Mapping[str, Any]) -> None:
        """Add a row's numbers to the curves."""
        if self._folder is not None:
            self._writer = self._writer or _open(self._folder)
            for name in row.keys() - set(_NO_CURVES):
                self._writer.add_scalar(f"{row['split']}/{name}", row[name], row["step"])

    def close(self) -> None:
        if self._writer is not None:
            self._writer.close()


def _open(folder: Path) -> Any:
    from torch.utils.tensorboard import SummaryWriter  # 1 s to import

    return SummaryWriter(str(folder))
