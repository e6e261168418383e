"""Arrays in files: written piece by piece, read memory-mapped."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np


class RaggedArray:
    """Items of different lengths laid end to end.

    flat     (sum of lengths, ...), or (n, ...) where every item is one entry
    offsets  (n + 1,) int64: item i is flat[offsets[i] : offsets[i + 1]]; None: item i is flat[i]
    """

    def __init__(self, flat: np.ndarray, offsets: np.ndarray | None = None):
        self.flat, self.offsets = flat, offsets

    @classmethod
    def pack(cls, items: Sequence[np.ndarray]) -> RaggedArray:
        """Lay the arrays (T_i, ...) end to end."""
        offsets = np.cumsum([0, *map(len, items)], dtype=np.int64)
        return cls(np.concatenate(items), offsets)

    def __len__(self) -> int:
        return len(self.flat) if self.offsets is None else len(self.offsets) - 1

    def __getitem__(self, i: int) -> np.ndarray:
        if not -len(self) <= i < len(self):
            raise IndexError(i)
        i %= len(self)
        if self.offsets is None:
            return np.asarray(self.flat[i])
        return np.asarray(self.flat[self.offsets[i] : self.offsets[i + 1]])

    @property
    def lengths(self) -> np.ndarray:
        """The length of each item (n,) int64; 1 where items are no sequences."""
        return np.ones(len(self), np.int64) if self.offsets is None else np.diff(self.offsets)

    def take(self, indices: Iterable[int]) -> list[np.ndarray]:
        """Return the items `indices`."""
        return [self[i] for i in indices]


class ArrayFile:
    """Write an array of unknown length to a .npy file, piece by piece."""

    def __init__(self, path: Path, dtype: np.dtype, element: tuple[int, ...] = ()):
        self.dtype, self.element, self.size = np.dtype(dtype), element, 0
        self._file: IO[bytes] = path.open("wb", buffering=1 << 20)
        self._write_header()

    def append(self, piece: np.ndarray) -> None:
        """Add the entries of `piece` (n, *element)."""
        if piece.shape[1:] != self.element:
            raise ValueError(f"entries have shape {piece.shape[1:]}, not {self.element}")
        self._file.write(np.ascontiguousarray(piece, self.dtype).data.cast("B") if piece.size else b"")
        self.size += len(piece)

    def close(self) -> None:
        """Write the final length into the header; NumPy leaves room for it."""
        self._file.seek(0)
        self._write_header()
        self._file.close()

    def abandon(self) -> None:
        """Close without finishing; the file is to be thrown away. Nothing happens to a closed one."""
        with contextlib.suppress(OSError):  # a full disk: what is buffered cannot be written anyway
            self._file.close()

    def _write_header(self) -> None:
        shape = (self.size, *self.element)
        header = {"descr": np.lib.format.dtype_to_descr(self.dtype), "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(self._file, header)


class ColumnWriter:
    """Write one column: entries, and offsets where items are sequences."""

    def __init__(self, path: Path, dtype: np.dtype, element: tuple[int, ...], ragged: bool):
        self.path, self.ragged, self.end = path, ragged, 0
        self._flat = ArrayFile(path.with_suffix(".npy"), dtype, element)
        self._offsets = ArrayFile(path.with_suffix(".offsets.npy"), np.dtype(np.int64)) if ragged else None
        self._add_offset()

    def append(self, item: np.ndarray) -> None:
        self._flat.append(item if self.ragged else item[None])
        self.end += len(item) if self.ragged else 1
        self._add_offset()

    def _add_offset(self) -> None:
        if self._offsets:
            self._offsets.append(np.array([self.end], np.int64))

    def close(self) -> None:
        for file in (self._flat, self._offsets):
            if file:
                file.close()

    def abandon(self) -> None:
        for file in (self._flat, self._offsets):
            if file:
                file.abandon()


def write_ragged(
    items: Iterable[np.ndarray], path: Path, dtype: Any, element: tuple[int, ...] = ()
) -> RaggedArray:
    """Write sequences (T_i, *element) to `path`.npy and `path`.offsets.npy in one stream, and open them."""
    writer = ColumnWriter(path, np.dtype(dtype), element, ragged=True)
    for item in items:
        writer.append(item)
    writer.close()
    return open_ragged(path)


def open_ragged(path: Path) -> RaggedArray:
    """Open a column as written, memory-mapped."""
    offsets = path.with_suffix(".offsets.npy")
    return RaggedArray(map_array(path.with_suffix(".npy")), map_array(offsets) if offsets.exists() else None)


def map_array(path: Path) -> np.ndarray:
    """Map a .npy file; a plain array over the map, as indexing np.memmap itself is slow."""
    with open(path, "rb") as file:
        np.lib.format.read_magic(file)
        empty = 0 in np.lib.format.read_array_header_1_0(file)[0]
    return np.asarray(np.load(path, mmap_mode=None if empty else "r", allow_pickle=False))
