"""NPZ: `values` (sum of T, C) and `lengths` (items), with `target` (items) where one is wanted."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import Any, cast

import numpy as np

from weft.core.errors import DataError
from weft.data.readers.registry import TARGETS, Files, Reader, readers
from weft.data.rows import Row
from weft.data.sizes import refuse_absurd

_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_BROKEN = (OSError, EOFError, ValueError, KeyError, zlib.error, zipfile.BadZipFile, RuntimeError, SyntaxError)


def read_npz(files: Files) -> Iterator[Row]:
    """Yield one row an item."""
    files.need_kinds("npz", ("values", "frames", "label", "value", "labels"))
    arrays = load_arrays(files.path)
    values, ends = _cut(files.path, arrays)
    targets = _targets(files, arrays, len(ends))
    starts = np.concatenate([[0], ends[:-1]])
    for item, (start, end) in enumerate(zip(starts.tolist(), ends.tolist(), strict=True)):
        target = targets[item].tolist() if targets is not None else None
        yield from files.row(item + 1, files.place(values[start:end], target))


def load_arrays(path: Path) -> dict[str, np.ndarray]:
    """Return the arrays of an .npz; false sizes and Python objects are refused."""
    try:
        with zipfile.ZipFile(path) as archive:
            return {
                info.filename.removesuffix(".npy"): _load(archive, info, path) for info in archive.infolist()
            }
    except _BROKEN as error:
        raise DataError(f"{path} is not a readable .npz ({' '.join(str(error).split())}).") from None


def _load(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> np.ndarray:
    with archive.open(info) as member:
        size = _claimed_size(cast(BufferedIOBase, member))
    if size > info.file_size:
        raise ValueError(f"`{info.filename}` claims {size:,} bytes, but holds {info.file_size:,}")
    refuse_absurd(size, f"`{info.filename}` of {path}", "Split the file.")
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _claimed_size(member: BufferedIOBase) -> int:
    """Return the bytes an array's header claims."""
    version = np.lib.format.read_magic(member)
    if version not in _HEADERS:
        raise ValueError(f"array format {version} is not known")
    shape, _, dtype = _HEADERS[version](member)
    if dtype.hasobject:
        raise ValueError("it holds Python objects; save plain arrays")
    size = int(dtype.itemsize)
    for axis in shape:
        size *= int(axis)
    return size


def _cut(path: Path, arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the values end to end and where each item ends."""
    values = _array(path, arrays, "values")
    if values.ndim == 3 and "lengths" not in arrays:
        ends = np.arange(1, len(values) + 1, dtype=np.int64) * values.shape[1]
        return values.reshape(-1, values.shape[2]), ends
    lengths = arrays.get("lengths", np.array([len(values)] if values.ndim else []))
    if lengths.ndim != 1 or lengths.dtype.kind not in "iu" or (lengths < 0).any():
        raise DataError(f"{path}: `lengths` must hold one whole number from 0 for each item.")
    if int(lengths.sum()) != len(values):
        raise DataError(
            f"{path}: `lengths` must add up to the {len(values):,} steps of `values`, not {lengths.sum():,}."
        )
    return values, np.cumsum(lengths.astype(np.int64))


def _targets(files: Files, arrays: dict[str, np.ndarray], items: int) -> np.ndarray | None:
    if not any(kind in TARGETS for kind in files.kinds):
        return None
    target = _array(files.path, arrays, "target")
    if len(target) != items:
        raise DataError(
            f"{files.path}: `target` must have one entry an item ({items:,}), but has {len(target):,}."
        )
    return target


def _array(path: Path, arrays: dict[str, Any], name: str) -> np.ndarray:
    if name not in arrays or not arrays[name].ndim:
        raise DataError(
            f"{path} must hold an array `{name}`. It holds: {', '.join(sorted(arrays)) or 'nothing'}."
        )
    return arrays[name]


def describe_npz(files: Files) -> str:
    """Say which arrays there are."""
    arrays = load_arrays(files.path)
    return ", ".join(f"`{name}` {array.shape} {array.dtype}" for name, array in arrays.items())


readers.register("npz")(Reader(read_npz, describe_npz))
