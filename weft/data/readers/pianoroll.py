"""Piano rolls in .mat files as published: cells `traindata`, `validdata`, `testdata` of (T, 88) frames."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from weft.core.errors import DataError, InputError, nearest
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row


def read_pianoroll(files: Files) -> Iterator[Row]:
    """Yield the (T, 88) frames of each piece of one part; key k is MIDI note 21 + k."""
    if files.kinds not in (("frames",), ("values",)):
        raise DataError(f"{files.path}: a piano roll gives frames, but {', '.join(files.kinds)} are wanted.")
    for item, piece in enumerate(_pieces(files)):
        yield from files.row(item + 1, (piece,))


def _pieces(files: Files) -> list[np.ndarray]:
    part = files.options.part
    if part is None:
        name = f"{files.path}#train"
        raise DataError(
            f"{files.path} holds three parts. Name one: {name}, #valid or #test, or data.part=train."
        )
    parts = _load(files.path)
    key = f"{part}data"
    if key not in parts:
        raise DataError(f"{files.path} has no `{key}`.{nearest(key, parts)}")
    return [np.asarray(piece) for piece in parts[key].ravel()]


def _load(path: Path) -> dict[str, np.ndarray]:
    try:
        from scipy.io import loadmat  # optional: the extra `mat`
    except ImportError:
        raise InputError("Reading .mat files needs scipy. Install it: pip install 'weft[mat]'.") from None
    try:
        content = loadmat(path)
    except Exception as error:  # a damaged file fails in many ways
        raise DataError(
            f"{path} is not a readable .mat file ({' '.join(str(error).split())[:80]})."
        ) from None
    return {name: value for name, value in content.items() if not name.startswith("__")}


def describe_pianoroll(files: Files) -> str:
    """Say which part is read."""
    return f"part {files.options.part}: {len(_pieces(files)):,} pieces of 88 keys"


readers.register("pianoroll")(Reader(read_pianoroll, describe_pianoroll))
