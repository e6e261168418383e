"""Plain text: one item a line, with or without a label before it; labels as file names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from weft.core.errors import DataError
from weft.data.lines import archive_members
from weft.data.readers.registry import Files, Reader, readers
from weft.data.rows import Row

_NAMED = (".txt", ".txt.gz", ".txt.xz")


def read_text(files: Files) -> Iterator[Row]:
    """Yield each line whole, empty ones too."""
    _one_kind(files)
    for line, text in files.lines():
        yield from files.row(line, (text,))


def _one_kind(files: Files) -> None:
    if len(files.kinds) != 1:
        rule = f"plain text gives one column, but {', '.join(files.kinds)} are wanted"
        raise DataError(f"{files.path}: {rule}. Name data.format=.")


def describe_text(files: Files) -> str:
    """Say what a line is taken for."""
    _one_kind(files)
    return f"one {files.kinds[0]} a line"


def read_labelled_text(files: Files) -> Iterator[Row]:
    """Yield lines `label text...`: the first word is the label."""
    files.need_kinds("labelled_text", ("text", "words", "values", "label", "value"))
    for line, text in files.lines():
        label, *rest = text.strip().split(maxsplit=1) or [""]
        if label:
            yield from files.row(line, files.place("".join(rest), label))
        else:
            files.counts.blank += 1


def describe_labelled_text(files: Files) -> str:
    """Say what the words of a line are taken for."""
    return "the first word of a line is its label, the rest its text"


def read_label_files(files: Files) -> Iterator[Row]:
    """Yield the lines of every NAME.txt in a folder or .zip, stripped, each labelled NAME."""
    files.need_kinds("label_files", ("text", "words", "values", "label", "value"))
    for path, label in label_files(files.path):
        for line, text in files.lines(path):
            if text.strip():
                yield from files.row(line, files.place(text.strip(), label), path)
            else:
                files.counts.blank += 1


def label_files(place: Path) -> list[tuple[Path, str]]:
    """Return (path, label) of each NAME.txt (.gz, .xz) below a folder or .zip, sorted."""
    found = [place / name for name in archive_members(place)] if place.is_file() else sorted(place.rglob("*"))
    named = [(path, _label(path)) for path in found if path.name.endswith(_NAMED) and path.name[0] != "."]
    if not named:
        raise DataError(f"{place} holds no NAME.txt. Put each label's items in a file named after it.")
    _refuse_twice(named)
    return named


def _label(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".xz").removesuffix(".txt")


def _refuse_twice(named: list[tuple[Path, str]]) -> None:
    seen: dict[str, Path] = {}
    for path, label in named:
        if label in seen:
            raise DataError(f"{path} and {seen[label]} both stand for label `{label}`. Keep one of them.")
        seen[label] = path


def describe_label_files(files: Files) -> str:
    """Say how many labels were found."""
    named = label_files(files.path)
    span = f"{named[0][1]} to {named[-1][1]}"
    return f"{len(named)} files, each named after its label ({span}), one item a line"


readers.register("text")(Reader(read_text, describe_text))
readers.register("labelled_text")(Reader(read_labelled_text, describe_labelled_text))
readers.register("label_files")(Reader(read_label_files, describe_label_files))
