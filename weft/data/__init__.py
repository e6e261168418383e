"""From files to batches: readers give rows, fields make them arrays, feeds hand out padded batches.

A name loads its file when first used, so that importing this room costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.data.arrays import RaggedArray, write_ragged
    from weft.data.batches import Batch, collate, padding_waste, plan_batches, plan_rows
    from weft.data.check import CheckReport
    from weft.data.feeds import BucketFeed, Feed, StreamFeed, WindowFeed
    from weft.data.fields import (
        Field,
        FramesField,
        LabelField,
        LabelsField,
        Limits,
        TextField,
        ValueField,
        VectorsField,
        WordsField,
        field_from_plain,
    )
    from weft.data.fit import FieldOptions, fit_field, fit_fields, fit_text, load_fields, save_fields
    from weft.data.lines import LineCounts, read_lines
    from weft.data.rows import ReadOptions, Row
    from weft.data.source import Rows, RowSource
    from weft.data.split import PositionRows, SplitRows, bucket, hash_split
    from weft.data.store import (
        Dataset,
        PrepareCounts,
        cache_folder,
        file_identity,
        open_dataset,
        prepare,
        prepare_cached,
        row_identity,
    )
    from weft.data.synthetic import make
    from weft.data.tokenizers import (
        ByteTokenizer,
        CharTokenizer,
        SubwordTokenizer,
        Tokenizer,
        WordTokenizer,
        tokenizer_from_plain,
    )
    from weft.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIALS",
    "UNK",
    "Batch",
    "BucketFeed",
    "ByteTokenizer",
    "CharTokenizer",
    "CheckReport",
    "Dataset",
    "Feed",
    "Field",
    "FieldOptions",
    "FramesField",
    "LabelField",
    "LabelsField",
    "Limits",
    "LineCounts",
    "PositionRows",
    "PrepareCounts",
    "RaggedArray",
    "ReadOptions",
    "Row",
    "RowSource",
    "Rows",
    "SplitRows",
    "StreamFeed",
    "SubwordTokenizer",
    "TextField",
    "Tokenizer",
    "ValueField",
    "VectorsField",
    "Vocabulary",
    "WindowFeed",
    "WordTokenizer",
    "WordsField",
    "bucket",
    "cache_folder",
    "collate",
    "field_from_plain",
    "file_identity",
    "fit_field",
    "fit_fields",
    "fit_text",
    "hash_split",
    "load_fields",
    "make",
    "open_dataset",
    "padding_waste",
    "plan_batches",
    "plan_rows",
    "prepare",
    "prepare_cached",
    "read_lines",
    "row_identity",
    "save_fields",
    "tokenizer_from_plain",
    "write_ragged",
]

_HOMES = {
    "arrays": (
        "RaggedArray",
        "write_ragged",
    ),
    "batches": (
        "Batch",
        "collate",
        "padding_waste",
        "plan_batches",
        "plan_rows",
    ),
    "check": ("CheckReport",),
    "feeds": (
        "BucketFeed",
        "Feed",
        "StreamFeed",
        "WindowFeed",
    ),
    "fields": (
        "Field",
        "FramesField",
        "LabelField",
        "LabelsField",
        "Limits",
        "TextField",
        "ValueField",
        "VectorsField",
        "WordsField",
        "field_from_plain",
    ),
    "fit": (
        "FieldOptions",
        "fit_field",
        "fit_fields",
        "fit_text",
        "load_fields",
        "save_fields",
    ),
    "lines": (
        "LineCounts",
        "read_lines",
    ),
    "rows": (
        "ReadOptions",
        "Row",
    ),
    "source": (
        "RowSource",
        "Rows",
    ),
    "split": (
        "PositionRows",
        "SplitRows",
        "bucket",
        "hash_split",
    ),
    "store": (
        "Dataset",
        "PrepareCounts",
        "cache_folder",
        "file_identity",
        "open_dataset",
        "prepare",
        "prepare_cached",
        "row_identity",
    ),
    "synthetic": ("make",),
    "tokenizers": (
        "ByteTokenizer",
        "CharTokenizer",
        "SubwordTokenizer",
        "Tokenizer",
        "WordTokenizer",
        "tokenizer_from_plain",
    ),
    "vocabulary": (
        "BOS",
        "EOS",
        "PAD",
        "SPECIALS",
        "UNK",
        "Vocabulary",
    ),
}


def __getattr__(name: str) -> Any:
    home = next((file for file, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(f"{__name__}.{home}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
