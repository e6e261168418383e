"""Fields of a stated size, and made-up data of any fields, for what asks how large and not what."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from weft.core.errors import ConfigError
from weft.core.rng import numpy_stream
from weft.data import (
    SPECIALS,
    ByteTokenizer,
    CharTokenizer,
    Dataset,
    Field,
    FieldOptions,
    RaggedArray,
    TextField,
    Vocabulary,
    WordTokenizer,
)

_FIRST_CHARACTER = 0x20000  # from here on Unicode has characters enough for any vocabulary of them


def stated_fields(schema: Mapping[str, str], options: FieldOptions) -> dict[str, Field]:
    """Return text fields with as many entries as `data.vocabulary` says, one for all if they share it."""
    strange = sorted({kind for kind in schema.values() if kind != "text"})
    if strange:
        raise ConfigError(
            f"What has no text alone must be explained with its data: how large its {strange[0]} is, "
            "only a file tells. Give one: data.train=FILE."
        )
    shared = _text(options)
    return {name: shared if options.shared else _text(options) for name in schema}


def _text(options: FieldOptions) -> TextField:
    names = range(options.vocabulary - len(SPECIALS))
    if options.tokens == "byte":
        return TextField(ByteTokenizer())
    if options.tokens == "char":
        return TextField(CharTokenizer(Vocabulary([chr(_FIRST_CHARACTER + i) for i in names])))
    return TextField(WordTokenizer(Vocabulary([f"w{i}" for i in names])))


def made_up(fields: Mapping[str, Field], lengths: Sequence[int], seed: int = 0) -> Dataset:
    """Return items of chance, one for each length; every sequence of an item is as long."""
    chance = numpy_stream(seed, "made up")
    columns = {
        name: _column(field, [_draw(field, n, chance) for n in lengths]) for name, field in fields.items()
    }
    return Dataset(columns, numbers=np.arange(1, len(lengths) + 1))


def _draw(field: Field, length: int, chance: np.random.Generator) -> np.ndarray:
    return np.asarray(_DRAWS[field.kind](field, length, chance), field.dtype)


def _column(field: Field, items: list[np.ndarray]) -> RaggedArray:
    return RaggedArray.pack(items) if field.ragged else RaggedArray(np.stack(items))


Draw = Callable[[Any, int, np.random.Generator], Any]


def _draw_words(field: Any, n: int, chance: np.random.Generator) -> np.ndarray:
    words = _draw_ids(field.size, (n, 1), chance)
    if field.chars is None:
        return words
    return np.concatenate([words, _draw_ids(field.chars.size, (n, field.element[0] - 1), chance)], 1)


def _draw_ids(size: int, shape: tuple[int, ...], chance: np.random.Generator) -> np.ndarray:
    """Draw ids of a vocabulary, none of them a special one."""
    return chance.integers(min(len(SPECIALS), size - 1), size, shape)


def _draw_label(field: Any, n: int, chance: np.random.Generator) -> Any:
    return chance.random(field.size) < 0.5 if field.multi else chance.integers(field.size)


_DRAWS: dict[str, Draw] = {
    "text": lambda field, n, chance: _draw_ids(field.size, (n,), chance),
    "words": _draw_words,
    "label": _draw_label,
    "labels": lambda field, n, chance: chance.integers(len(field.names), size=n),
    "value": lambda field, n, chance: chance.standard_normal(),
    "values": lambda field, n, chance: chance.standard_normal((n, field.width)),
    "frames": lambda field, n, chance: chance.random((n, field.width)) < 0.1,
}
