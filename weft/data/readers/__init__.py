"""Readers: from files of every accepted layout to rows of raw values."""

from weft.data.readers import conll, fasta, jsonl, npz, parallel, pianoroll, series, table, text
from weft.data.readers.registry import Files, Reader, readers

__all__ = [
    "Files",
    "Reader",
    "conll",
    "fasta",
    "jsonl",
    "npz",
    "parallel",
    "pianoroll",
    "readers",
    "series",
    "table",
    "text",
]
