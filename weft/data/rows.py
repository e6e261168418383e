"""What a reader yields, and the options that steer reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

from weft.core.config import option

KINDS = ("text", "words", "label", "labels", "value", "values", "frames")
FORMATS = (
    "auto",
    "tsv",
    "csv",
    "jsonl",
    "parallel",
    "text",
    "labelled_text",
    "label_files",
    "conll",
    "conllu",
    "fasta",
    "series",
    "npz",
    "pianoroll",
)


class Row(NamedTuple):
    """One item of a file: its 1-based line (or place) and its raw values, in the order of the kinds."""

    number: int
    values: tuple[Any, ...]


@dataclass(frozen=True)
class ReadOptions:
    """How files are read; everything `auto` or empty is inferred and printed."""

    format: str = option("auto", "how the files are laid out", choices=FORMATS)
    columns: tuple[str, ...] = option((), "columns to read, by name or number from 1; default the first")
    header: bool | str = option(
        "auto",
        "does the first line name the columns; auto: where unmistakable",
        choices=("auto", True, False),
    )
    delimiter: str | None = option(None, "what stands between columns; default tab (tsv) or comma (csv)")
    max_line: int = option(1 << 20, "longest line accepted, in bytes", low=1)
    missing: tuple[str, ...] = option((), "words that stand for a missing number, such as NaN or NA")
    normalize: str = option("none", "Unicode normal form given to text", choices=("none", "nfc", "nfkc"))
    part: str | None = option(None, "part of a .mat file", choices=("train", "valid", "test"))
    date: str | None = option(None, "column of dates in a numeric series; default found by itself")
    series: str | None = option(None, "column that names the series a line belongs to")
    unique: bool = option(False, "keep only the first row of each input")


def counted(number: int, thing: str) -> str:
    """Write a number of things: 1 column, 2 columns."""
    return f"{number:,} {thing}{'' if number == 1 else 's'}"
