"""Tell the format of files by their names, and by their first lines where names do not tell."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

from weft.core.errors import DataError
from weft.data.lines import FaultList, archive_members, read_lines, split_archive

_SUFFIXES = {
    ".tsv": "tsv",
    ".csv": "csv",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".conllu": "conllu",
    ".conll": "conll",
    ".bio": "conll",
    ".iob": "conll",
    ".fasta": "fasta",
    ".fa": "fasta",
    ".faa": "fasta",
    ".fna": "fasta",
    ".npz": "npz",
    ".mat": "pianoroll",
}
_LOOK = 50


def named_format(paths: tuple[Path, ...]) -> str | None:
    """Return what the name of a file tells of its format, whether it is there or not."""
    name = paths[0].name.lower()
    for packed in (".gz", ".xz", ".zip"):
        name = name.removesuffix(packed)
    return _SUFFIXES.get(Path(name).suffix) if len(paths) == 1 else None


def infer_format(paths: tuple[Path, ...], kinds: tuple[str, ...], max_line: int) -> str:
    """Return the format of `paths` when `kinds` are wanted from them."""
    if len(paths) > 1:
        return "parallel"
    path = next(iter(paths))
    if path.is_dir() or _is_label_archive(path):
        return "label_files"
    named = _SUFFIXES.get(_suffix(path))
    if named in ("csv", "tsv") and kinds == ("values",):
        return "series"
    return named or _look(path, kinds, max_line)


def _is_label_archive(path: Path) -> bool:
    archive, member = split_archive(path)
    return archive is not None and member is None and len(archive_members(archive)) > 1


def _suffix(path: Path) -> str:
    """Return the suffix below .gz or .xz; a .zip with one member has that member's."""
    archive, member = split_archive(path)
    if archive is not None and member is None:
        path = Path(archive_members(archive)[0]) if archive_members(archive) else path
    name = path.name.lower().removesuffix(".gz").removesuffix(".xz")
    return Path(name).suffix


def _look(path: Path, kinds: tuple[str, ...], max_line: int) -> str:
    lines = [
        text for _, text in islice(read_lines(path, max_line, refuse=FaultList(), skip_long=False), _LOOK)
    ]
    filled = [line for line in lines if line.strip()]
    found = _guess(lines, filled, kinds) if filled else "text"
    if found is None:
        wanted = " and ".join(kinds)
        raise DataError(
            f"{path}: where {wanted} stand is not plain. Name the layout: data.format=tsv, csv, jsonl, ..."
        )
    return found


def _guess(lines: list[str], filled: list[str], kinds: tuple[str, ...]) -> str | None:
    if filled[0].startswith(">") and kinds[0] == "text" and len(kinds) == 2:
        return "fasta"
    if len(kinds) == 1 and "values" not in kinds:
        return "text"
    if all(line.startswith(("{", "[")) for line in filled):
        return "jsonl"
    if kinds == ("values",):
        return "series"
    return _guess_columns(lines, filled, kinds)


def _guess_columns(lines: list[str], filled: list[str], kinds: tuple[str, ...]) -> str | None:
    if "labels" in kinds and len(filled) < len(lines):
        return "conllu" if filled[-1].count("\t") == 9 else "conll"
    if all("\t" in line for line in filled):
        return "tsv"
    if {"label", "value"} & set(kinds) and all(_is_label(line.split()[0]) for line in filled):
        return "labelled_text"
    return None


def _is_label(word: str) -> bool:
    return word.lstrip("+-").replace(".", "", 1).isdecimal() or word.startswith("__label__")
