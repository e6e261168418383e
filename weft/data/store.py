"""Encoded items in memory-mapped files: written in one stream, read as arrays, never as objects."""

from __future__ import annotations

import dataclasses
import errno
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weft.core.errors import ArtefactError, DataError, ResourceError
from weft.data.arrays import ArrayFile, ColumnWriter, RaggedArray, map_array, open_ragged, write_ragged
from weft.data.fields import Field, Limits
from weft.data.rows import Row
from weft.data.source import RowSource
from weft.data.split import PositionRows, SplitRows

__all__ = [
    "Dataset",
    "PrepareCounts",
    "RaggedArray",
    "cache_folder",
    "file_identity",
    "fit_limits",
    "open_dataset",
    "prepare",
    "prepare_cached",
    "row_identity",
    "write_ragged",
]

FORMAT = 2


@dataclass(frozen=True)
class PrepareCounts:
    """What preparing did: items kept, dropped (empty, or too long), cut, and unknown entries a field."""

    kept: int = 0
    empty: int = 0
    too_long: int = 0
    cut: int = 0
    unknown: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Dataset:
    """Named columns of equal size, seen whole or through `rows`, the places of the items in view.

    numbers  (n,) int64, which row of its source, from 1, each stored item is; None where unknown
    """

    columns: dict[str, RaggedArray]
    rows: np.ndarray | None = None
    numbers: np.ndarray | None = None
    counts: PrepareCounts | None = None

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()))) if self.rows is None else len(self.rows)

    def places(self, indices: np.ndarray) -> np.ndarray:
        """Return where in the columns the items `indices` of this view stand."""
        return np.asarray(indices if self.rows is None else self.rows[indices])

    def lengths(self, name: str) -> np.ndarray:
        """Return the length of each item of a column (n,)."""
        lengths = self.columns[name].lengths
        return lengths if self.rows is None else lengths[self.rows]

    def ragged(self) -> list[str]:
        """Return the names of the columns that hold sequences."""
        return [name for name, column in self.columns.items() if column.offsets is not None]

    def item(self, i: int) -> dict[str, np.ndarray]:
        """Return one item: column -> array."""
        place = int(self.places(np.arange(len(self))[[i]])[0])
        return {name: column[place] for name, column in self.columns.items()}

    def select(self, indices: np.ndarray) -> Dataset:
        """Return a view of the items `indices`, in that order; nothing is copied."""
        return dataclasses.replace(self, rows=self.places(np.asarray(indices, np.int64)))


def prepare(
    rows: Iterable[Row],
    fields: Mapping[str, Field],
    folder: Path | None = None,
    limits: Limits | None = None,
) -> Dataset:
    """Encode rows, one value a field in the order of `fields`, into `folder`, whole or not at all.

    Without a folder the files are unnamed: they live as long as the dataset does.
    """
    limits = limits or Limits()
    if folder is None:
        with tempfile.TemporaryDirectory(prefix="weft-") as place, _room(Path(place)):
            return _write(rows, fields, Path(place), limits)
    folder.parent.mkdir(parents=True, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        with _room(temporary):
            _write(rows, fields, temporary, limits)
            _settle(temporary, folder)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return open_dataset(folder)


def prepare_cached(rows: Iterable[Row], fields: Mapping[str, Field], limits: Limits) -> Dataset:
    """Encode rows, or open what an earlier call made of the same ones.

    Their identity with fields and limits names the folder in the cache; rows without one are encoded anew.
    """
    identity = row_identity(rows)
    if identity is None:
        return prepare(rows, fields, None, limits)
    learned = [[name, field.plain()] for name, field in fields.items()]
    key = json.dumps([FORMAT, identity, learned, dataclasses.asdict(limits)])
    folder = cache_folder() / hashlib.sha256(key.encode()).hexdigest()
    try:
        return open_dataset(folder)
    except (OSError, ValueError, KeyError, TypeError, ArtefactError):  # absent, or damaged by somebody
        shutil.rmtree(folder, ignore_errors=True)
    return prepare(rows, fields, folder, limits)


def row_identity(rows: Any) -> Any:
    """Return plain data that tells a source of rows: files, options, part; None for rows in memory."""
    if isinstance(rows, SplitRows | PositionRows):
        inner = row_identity(rows.source)
        return None if inner is None else [type(rows).__name__, rows.part, list(rows.fractions), inner]
    if not isinstance(rows, RowSource) or rows.options.format == "auto":  # memory has no format
        return None
    files = [file_identity(path) for path in rows.paths]
    return [dataclasses.asdict(rows.options), list(rows.kinds), files]


def cache_folder() -> Path:
    """Return where prepared data is kept: $WEFT_CACHE, or weft in the user's cache."""
    return Path(os.environ.get("WEFT_CACHE") or Path.home() / ".cache" / "weft")


def file_identity(path: Path) -> list[list[Any]]:
    """Return what tells a file's content without reading it: place, size, time; of a folder, each file's.

    A member of an archive (`a.zip/name`) is told by the archive.
    """
    path = path.absolute()
    real = next(place for place in (path, *path.parents) if place.exists())
    files = sorted(p for p in real.rglob("*") if p.is_file()) if path.is_dir() else [real]
    stats = [(file, file.stat()) for file in files]
    return [[str(path)], *([str(file), stat.st_size, stat.st_mtime_ns] for file, stat in stats)]


def _settle(temporary: Path, folder: Path) -> None:
    """Give the folder its name; if another process was faster, its equal work stands."""
    try:
        os.replace(temporary, folder)
    except OSError:
        if not (folder / "dataset.json").exists():
            raise


def open_dataset(folder: Path) -> Dataset:
    """Open a prepared folder, memory-mapped."""
    about = json.loads((folder / "dataset.json").read_text(encoding="utf-8"))
    columns = {name: open_ragged(folder / f"column{i}") for i, name in enumerate(about["columns"])}
    counts = PrepareCounts(**about["counts"])
    if about["format"] != FORMAT or any(len(column) != counts.kept for column in columns.values()):
        raise ArtefactError(
            f"The prepared data in {folder} is damaged or of another version. Delete the folder."
        )
    return Dataset(columns, numbers=map_array(folder / "numbers.npy"), counts=counts)


def _write(rows: Iterable[Row], fields: Mapping[str, Field], folder: Path, limits: Limits) -> Dataset:
    with ExitStack() as files:
        columns = {}
        for i, (name, kind) in enumerate(fields.items()):
            columns[name] = ColumnWriter(folder / f"column{i}", kind.dtype, kind.element, kind.ragged)
            files.callback(columns[name].abandon)
        numbers = ArrayFile(folder / "numbers.npy", np.dtype(np.int64))
        files.callback(numbers.abandon)
        counts = _fill(rows, fields, columns, numbers, limits)
        for file in (*columns.values(), numbers):
            file.close()
    about = {"format": FORMAT, "columns": list(fields), "counts": dataclasses.asdict(counts)}
    (folder / "dataset.json").write_text(json.dumps(about), encoding="utf-8")
    return open_dataset(folder)


def _fill(
    rows: Iterable[Row],
    fields: Mapping[str, Field],
    columns: Mapping[str, ColumnWriter],
    numbers: ArrayFile,
    limits: Limits,
) -> PrepareCounts:
    tally = {"kept": 0, "empty": 0, "too_long": 0, "cut": 0}
    unknown = dict.fromkeys(fields, 0)
    for place, row in enumerate(rows, start=1):  # a source of several files has many a line 1
        items = _encode(row, fields)
        fate, items = fit_limits(items, fields, limits)
        if fate in ("kept", "cut"):
            for name, item in items.items():
                columns[name].append(item)
            _count_unknown(unknown, fields, row, items)
            numbers.append(np.array([place], np.int64))
            tally["kept"] += fate == "cut"
        tally[fate] += 1
    if not tally["kept"]:
        raise DataError(_nothing_left(tally))
    return PrepareCounts(**tally, unknown=unknown)


def _nothing_left(tally: Mapping[str, int]) -> str:
    """Say why no item was kept, and what would keep some."""
    why = f"No item is left: {tally['empty']} are empty, {tally['too_long']} too long."
    if tally["too_long"]:
        return f"{why} Raise data.max_length, or cut them: data.over_length=cut."
    return f"{why} Look at the file: weft data check FILE."


def _encode(row: Row, fields: Mapping[str, Field]) -> dict[str, np.ndarray]:
    """Encode one row; an error names its line and field."""
    items = {}
    for (name, kind), value in zip(fields.items(), row.values, strict=True):
        try:
            items[name] = kind.encode(value)
        except DataError as error:
            raise DataError(f"Line {row.number}, field `{name}`: {error}") from None
    _check_aligned(row.number, fields, items)
    return items


def _check_aligned(number: int, fields: Mapping[str, Field], items: Mapping[str, np.ndarray]) -> None:
    """Refuse labels that are not one an element of the first sequence."""
    first = next((name for name in fields if fields[name].ragged), "")
    for name, kind in fields.items():
        if kind.kind == "labels" and len(items[name]) != len(items[first]):
            raise DataError(
                f"Line {number}: `{name}` needs one label an element of `{first}` ({len(items[first])}), "
                f"but has {len(items[name])}. Correct or remove the line."
            )


def fit_limits(
    items: dict[str, np.ndarray], fields: Mapping[str, Field], limits: Limits
) -> tuple[str, dict[str, np.ndarray]]:
    """Say what becomes of an item (kept, cut, empty, too_long), and return it, cut if need be."""
    lengths = [len(items[name]) for name in items if fields[name].ragged]
    if limits.empty == "drop" and 0 in lengths:
        return "empty", items
    most = limits.max_length
    if most is None or max(lengths, default=0) <= most:
        return "kept", items
    if limits.over_length == "drop":
        return "too_long", items
    return "cut", {name: item[:most] if fields[name].ragged else item for name, item in items.items()}


def _count_unknown(
    unknown: dict[str, int], fields: Mapping[str, Field], row: Row, items: Mapping[str, np.ndarray]
) -> None:
    for (name, kind), value in zip(fields.items(), row.values, strict=True):
        unknown[name] += kind.unknown(value, items[name])


@contextmanager
def _room(folder: Path) -> Iterator[None]:
    """Say in one line that the disk of `folder` is full, should it be."""
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        free = shutil.disk_usage(folder).free
        raise ResourceError(
            f"The disk is full: preparing data in {folder.parent} needs more than the {free:,} bytes free. "
            "Set WEFT_CACHE to a folder with more room."
        ) from None
