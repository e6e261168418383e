"""Encode the data of a recipe into the cache."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.api.describe import describe_field, left_out
from weft.api.session import Sources, learn_fields
from weft.cli.train import read_settings
from weft.data import Limits, prepare_cached
from weft.data.rows import counted
from weft.tasks.sources import PARTS


def prepare(words: Sequence[str]) -> Iterator[str]:
    """Learn the fields and encode every part, saying what was made of each."""
    settings = read_settings(words)
    sources = Sources(settings)
    fields = learn_fields(settings, sources)
    for name, field in fields.items():
        yield f"{name}: {describe_field(field)}"
    for part in PARTS:
        rows = getattr(sources.parts, part)
        if rows is not None:
            data = prepare_cached(rows, fields, settings.data.share(Limits))
            yield f"{part}: {', '.join([rows.description, counted(len(data), 'item'), *left_out(data)])}"
