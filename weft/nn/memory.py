"""What a decoder is given of a source."""

from __future__ import annotations

from typing import NamedTuple

from weft.core.shapes import Float, Tensor
from weft.nn.attention import AttentionMemory


class SourceMemory(NamedTuple):
    """Prepared once a source: its summary s, and keys and values for each attention of the decoder.

    One row a source row; a decoder's batch may hold several lanes for each.
    """

    summary: Float[Tensor, "B D"]
    attended: tuple[AttentionMemory, ...]


def lane_summary(memory: SourceMemory, batch_size: int) -> Float[Tensor, "B D"]:
    """Return the summary for every lane of a batch."""
    rows = memory.summary.shape[0]
    lanes = batch_size // rows if rows else 1
    return memory.summary if lanes == 1 else memory.summary.repeat_interleave(lanes, dim=0)
