"""Parallel text: line n of one file belongs to line n of the other."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path

import numpy as np

from weft.core.errors import DataError
from weft.data.lines import BROKEN
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row

_GAIN = 15.0  # nats by which two ways of pairing must explain the lengths better than one


def read_parallel(files: Files) -> Iterator[Row]:
    """Yield the pairs of lines; unequal numbers of lines are refused."""
    _two(files)
    for pair in zip_longest(*(files.all_lines(path) for path in files.paths)):
        if None in pair:
            files.refuse(files.path, 0, _unequal(files))
            return
        if any(text is BROKEN for _, text in pair):
            continue
        yield from files.row(pair[0][0], tuple(text for _, text in pair))


def _two(files: Files) -> None:
    wanted = len(files.kinds)
    if len(files.paths) != wanted:
        given = len(files.paths)
        raise DataError(
            f"Parallel text needs {wanted} files ({', '.join(files.kinds)}), but {given} are given."
        )


def _unequal(files: Files) -> str:
    """Say both counts and where the pairing seems to go wrong."""
    sizes = [_line_sizes(files, path) for path in files.paths]
    counts = [len(lengths) for lengths in sizes]
    line = suspicious(sizes[0], sizes[-1])
    here = [int(lengths[line - 1]) if line <= len(lengths) else None for lengths in (sizes[0], sizes[-1])]
    shown = " and ".join("no line" if size is None else f"{size} characters" for size in here)
    others = ", ".join(f"{p} has {count:,}" for p, count in zip(files.paths[1:], counts[1:], strict=True))
    return f"has {counts[0]:,} lines, but {others}. The first suspicious line is {line} ({shown}). Mend it."


def _line_sizes(files: Files, path: Path) -> np.ndarray:
    return np.fromiter((len(text.strip()) for _, text in files.quietly().all_lines(path)), dtype=np.int64)


def suspicious(first: np.ndarray, second: np.ndarray) -> int:
    """Return the 1-based line where two files seem to part.

    The first pair with one side empty; else the change point k of r_t = log((a_t + 1) / (b_t + 1))
    that maximises n log s - k log s_before - (n - k) log s_after; else the first line without a partner.
    """
    size = min(len(first), len(second))
    a, b = first[:size], second[:size]
    halves = np.flatnonzero((a == 0) != (b == 0))
    if len(halves):
        return int(halves[0]) + 1
    change = _change_point(np.log((a + 1) / (b + 1))) if size >= 8 else None
    return size + 1 if change is None else change + 1


def _change_point(ratios: np.ndarray) -> int | None:
    """Return the index where the spread of `ratios` changes most, None where one spread explains all."""
    size = len(ratios)
    centred = np.square(ratios - np.median(ratios))
    before = np.arange(2, size - 1)
    sums = np.cumsum(centred)
    floor = 1e-4  # equal lengths everywhere would give no spread at all
    spread_before = sums[before - 1] / before + floor
    spread_after = (sums[-1] - sums[before - 1]) / (size - before) + floor
    whole = size * np.log(sums[-1] / size + floor)
    gain = whole - before * np.log(spread_before) - (size - before) * np.log(spread_after)
    best = int(np.argmax(np.where(spread_after > spread_before, gain, -np.inf)))
    return int(before[best]) if gain[best] / 2 > _GAIN and spread_after[best] > spread_before[best] else None


def describe_parallel(files: Files) -> str:
    """Say which file gives what."""
    _two(files)
    return ", ".join(f"{kind} from {path}" for kind, path in zip(files.kinds, files.paths, strict=True))


readers.register("parallel")(Reader(read_parallel, describe_parallel))
