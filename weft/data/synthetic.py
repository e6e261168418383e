"""Make data sets whose answers are known: dates, adding, copy, reverse."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import numpy as np

from weft.core.errors import ConfigError
from weft.core.registry import Registry
from weft.core.rng import numpy_stream
from weft.data.dates import DAYS, day, spell, spellings
from weft.data.sizes import refuse_absurd, refuse_full
from weft.data.split import bucket

PARTS = ("train", "valid", "test")
SYMBOLS = "abcdefghij"
_FRACTION = 0.1  # of all possible inputs that are kept for valid, and as many for test

Maker = Callable[[dict[str, int], int, Path, int], dict[str, Path]]
makers: Registry[Maker] = Registry("synthetic data set")
LENGTHS = {"dates": 0, "adding": 200, "copy": 20, "reverse": 20}


def make(
    name: str,
    n: int,
    seed: int,
    directory: str | Path,
    *,
    held_out: int | None = None,
    length: int | None = None,
) -> dict[str, Path]:
    """Write a set of `n` training items and `held_out` (default n / 10) for valid and for test.

    dates    spelt.tsv -> ISO, with `PART.align` beside: pairs `source-target` of 0-based characters
    adding   T pairs (number, mark); the target is the sum of the two marked numbers
    copy     a line of symbols; the target is the same line
    reverse  a line of symbols; the target is the line backwards
    """
    maker = makers[name]
    held = max(n // 10, 1) if held_out is None else held_out
    steps = LENGTHS[name] if length is None else length
    _check_sizes(name, n, held, steps)
    folder = Path(directory)
    _check_room(name, n + 2 * held, steps, folder)
    folder.mkdir(parents=True, exist_ok=True)
    return maker({"train": n, "valid": held, "test": held}, seed, folder, steps)


def _check_sizes(name: str, n: int, held: int, length: int) -> None:
    lowest = 0 if name == "dates" else 2
    for key, value, low in (("n", n, 1), ("held_out", held, 1), ("length", length, lowest)):
        if value < low:
            raise ConfigError(f"`{key}` must be at least {low}, but is {value}.")


def _check_room(name: str, items: int, length: int, folder: Path) -> None:
    """Refuse sizes that memory or disk would not hold."""
    in_memory = items * {"dates": 500, "adding": 16 * length}.get(name, 0)
    on_disk = items * {"dates": 120, "adding": 8 * length}.get(name, 4 * length)
    refuse_absurd(in_memory, f"{items:,} items", "Ask for a smaller `n` or `length`.")
    refuse_full(on_disk, folder, f"{items:,} items")


@makers.register("dates")
def make_dates(sizes: dict[str, int], seed: int, folder: Path, length: int) -> dict[str, Path]:
    """Write dates in many spellings and as ISO. A date of one part stands in no other part."""
    found = {}
    for part, count in sizes.items():
        pairs = list(_dates(part, count, seed))
        found[part] = folder / f"{part}.tsv"
        write_lines(found[part], (f"{source}\t{target}" for source, target, _ in pairs))
        write_lines(folder / f"{part}.align", (alignment for _, _, alignment in pairs))
    return found


def _dates(part: str, count: int, seed: int) -> Iterator[tuple[str, str, str]]:
    """Yield (spelling, ISO, alignment as `source-target` pairs)."""
    rng = numpy_stream(seed, "dates", part)
    forms = spellings()
    while count:
        date = day(int(rng.integers(DAYS)))
        if _part(date.isoformat()) == part:
            count -= 1
            source, sources = spell(date, forms[int(rng.integers(len(forms)))])
            pairs = (f"{i}-{j}" for j, places in enumerate(sources) for i in places)
            yield source, date.isoformat(), " ".join(pairs)


def _part(text: str) -> str:
    place = bucket(text)
    return "test" if place < _FRACTION else "valid" if place < 2 * _FRACTION else "train"


@makers.register("adding")
def make_adding(sizes: dict[str, int], seed: int, folder: Path, length: int) -> dict[str, Path]:
    """Write x_t = (u_t, m_t): u uniform in [0, 1), m = 1 at one place of each half. Target: sum u_t m_t."""
    found = {}
    for part, count in sizes.items():
        values, target = _adding(count, length, numpy_stream(seed, "adding", part))
        found[part] = folder / f"{part}.npz"
        lengths = np.full(count, length, dtype=np.int64)
        _write_arrays(found[part], values=values.reshape(-1, 2), lengths=lengths, target=target)
    return found


def _adding(count: int, length: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    values = np.zeros((count, length, 2), dtype=np.float32)
    values[:, :, 0] = rng.random((count, length), dtype=np.float32)
    rows = np.arange(count)
    first = rng.integers(0, length // 2, count)
    second = rng.integers(length // 2, length, count)
    values[rows, first, 1] = values[rows, second, 1] = 1
    return values, values[rows, first, 0] + values[rows, second, 0]


@makers.register("copy")
def make_copy(sizes: dict[str, int], seed: int, folder: Path, length: int) -> dict[str, Path]:
    """Write lines of up to `length` symbols, each beside itself."""
    return _make_symbols("copy", sizes, seed, folder, length, 1)


@makers.register("reverse")
def make_reverse(sizes: dict[str, int], seed: int, folder: Path, length: int) -> dict[str, Path]:
    """Write lines of up to `length` symbols, each beside itself backwards."""
    return _make_symbols("reverse", sizes, seed, folder, length, -1)


def _make_symbols(
    name: str, sizes: dict[str, int], seed: int, folder: Path, length: int, step: int
) -> dict[str, Path]:
    found = {part: folder / f"{part}.tsv" for part in sizes}
    for part, count in sizes.items():
        lines = _symbols(part, count, length, numpy_stream(seed, name, part))
        write_lines(found[part], (f"{' '.join(line)}\t{' '.join(line[::step])}" for line in lines))
    return found


def _symbols(part: str, count: int, length: int, rng: np.random.Generator) -> Iterator[list[str]]:
    """Yield lines of length / 2 to `length` symbols; a line of one part stands in no other part."""
    while count:
        size = int(rng.integers(max(length // 2, 1), length + 1))
        line = [SYMBOLS[i] for i in rng.integers(len(SYMBOLS), size=size)]
        if _part(" ".join(line)) == part:
            count -= 1
            yield line


def write_lines(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a temporary name and rename it, so no half file is ever there."""
    draft = path.with_name(f"{path.name}.part")
    with draft.open("w", encoding="utf-8", newline="\n") as file:
        file.writelines(f"{line}\n" for line in lines)
    os.replace(draft, path)


def _write_arrays(path: Path, **arrays: np.ndarray) -> None:
    draft = path.with_name(f"{path.name}.part")
    with draft.open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # the names are the caller's
    os.replace(draft, path)
