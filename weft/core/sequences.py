"""A padded batch that carries its lengths. Masks, reversal, gathering live here and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from weft.core.shapes import Bool, Int, Tensor


def length_mask(lengths: Int[Tensor, "B"], size: int) -> Bool[Tensor, "B T"]:
    """Return mask[b, t] = t < lengths[b] for t < size; True keeps."""
    steps = torch.arange(size, device=lengths.device)
    return steps < lengths.unsqueeze(1)


@dataclass(frozen=True, slots=True)
class Sequences:
    """Rows of different lengths in one padded tensor.

    data     (B, T, ...)   padded after each row's last valid element
    lengths  (B,) int64    valid elements of each row, 0 to T
    """

    data: Tensor
    lengths: Int[Tensor, "B"]

    @classmethod
    def full(cls, data: Tensor) -> Sequences:
        """Wrap a tensor (B, T, ...) in which every element is valid."""
        batch, size = data.shape[:2]
        return cls(data, torch.full((batch,), size, dtype=torch.int64, device=data.device))

    @classmethod
    def pad(cls, rows: Sequence[Tensor], value: float = 0) -> Sequences:
        """Stack rows (T_b, ...) of different lengths, filling with `value`."""
        lengths = torch.tensor([len(row) for row in rows], dtype=torch.int64, device=rows[0].device)
        data = torch.nn.utils.rnn.pad_sequence(list(rows), batch_first=True, padding_value=value)
        return cls(data, lengths)

    @property
    def batch_size(self) -> int:
        return self.data.shape[0]

    @property
    def max_length(self) -> int:
        """The padded length T."""
        return self.data.shape[1]

    @property
    def device(self) -> torch.device:
        return self.data.device

    def mask(self) -> Bool[Tensor, "B T"]:
        """Return True where an element is valid."""
        return length_mask(self.lengths, self.max_length)

    def with_data(self, data: Tensor) -> Sequences:
        """Return these lengths with other data (B, T, ...)."""
        return Sequences(data, self.lengths)

    def fill(self, value: float = 0) -> Sequences:
        """Return the same with every padded element set to `value`."""
        return self.with_data(self.data.masked_fill(~self._broadcast_mask(), value))

    def reverse(self) -> Sequences:
        """Reverse the valid part of each row; the padding keeps its place."""
        steps = torch.arange(self.max_length, device=self.device)
        ends = self.lengths.unsqueeze(1)
        index = torch.where(steps < ends, ends - 1 - steps, steps)
        return self.with_data(self._gather(index))

    def last(self) -> Tensor:
        """Return each row's last valid element (B, ...); zeros for an empty row."""
        return self.at(self.lengths - 1)

    def at(self, index: Int[Tensor, "B"]) -> Tensor:
        """Return element `index[b]` of each row (B, ...); zeros where the index is negative."""
        if self.max_length == 0:
            return self.data.new_zeros(self.batch_size, *self.data.shape[2:])
        picked = self._gather(index.clamp(min=0).unsqueeze(1)).squeeze(1)
        keep = (index >= 0).view(-1, *[1] * (picked.dim() - 1))
        return torch.where(keep, picked, torch.zeros_like(picked))

    def mean(self) -> Tensor:
        """Return the mean over valid elements (B, ...); zeros for an empty row."""
        count = self.lengths.clamp(min=1).view(-1, *[1] * (self.data.dim() - 2))
        return self.fill(0).data.sum(1) / count.to(self.data.dtype)

    def rows(self, index: Int[Tensor, "R"]) -> Sequences:
        """Return the rows `index`, in that order."""
        return Sequences(self.data.index_select(0, index), self.lengths.index_select(0, index))

    def split(self, step: int) -> tuple[Sequences, Sequences]:
        """Cut every row at `step` into a head and a tail."""
        head = Sequences(self.data[:, :step], self.lengths.clamp(max=step))
        tail = Sequences(self.data[:, step:], (self.lengths - step).clamp(min=0))
        return head, tail

    def unpad(self) -> list[Tensor]:
        """Return the rows as tensors (T_b, ...) of their own lengths."""
        return [row[:n] for row, n in zip(self.data, self.lengths.tolist(), strict=True)]

    def to(self, device: torch.device | str) -> Sequences:
        """Move both tensors to a device; on the way to a GPU nobody waits."""
        ahead = torch.device(device).type == "cuda"
        return Sequences(
            self.data.to(device, non_blocking=ahead), self.lengths.to(device, non_blocking=ahead)
        )

    def _broadcast_mask(self) -> Tensor:
        mask = self.mask()
        return mask.view(*mask.shape, *[1] * (self.data.dim() - 2))

    def _gather(self, index: Int[Tensor, "B T2"]) -> Tensor:
        """Return data[b, index[b, t]] (B, T2, ...)."""
        shape = index.shape + self.data.shape[2:]
        index = index.view(*index.shape, *[1] * (self.data.dim() - 2))
        return self.data.gather(1, index.expand(shape))
