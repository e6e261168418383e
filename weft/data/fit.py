"""Learn fields from training rows, each in one streaming pass; store and load them as one JSON file."""

from __future__ import annotations

import itertools
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.core.config import option
from weft.core.errors import ArtefactError, ConfigError, DataError
from weft.data.fields import (
    MOST_LABELS,
    Field,
    FramesField,
    LabelField,
    LabelsField,
    TextField,
    ValueField,
    VectorsField,
    WordsField,
    field_from_plain,
    read_series,
    read_value,
    split_labels,
)
from weft.data.rows import Row
from weft.data.tokenizers import ByteTokenizer, CharTokenizer, SubwordTokenizer, Tokenizer, WordTokenizer
from weft.data.vocabulary import choose

FORMAT = 1


@dataclass(frozen=True)
class FieldOptions:
    """How raw values become numbers."""

    tokens: str = option("subword", "what a text is cut into", choices=("char", "byte", "word", "subword"))
    vocabulary: int = option(8000, "most entries of a vocabulary", low=5, high=1 << 24)
    min_count: int = option(1, "how often a word or character must stand in training to be kept", low=1)
    subwords: str = option("byte", "what subwords are made of", choices=("byte", "space"))
    shared: bool = option(False, "one vocabulary for all texts")
    words: str = option(
        "words", "what is known of a word: itself, or its letters too", choices=("words", "chars")
    )
    max_chars: int = option(16, "most characters kept of a word", low=1, high=1024)
    multi_label: bool = option(False, "an item has several labels, commas between them")
    scale: bool = option(True, "scale numbers to mean 0 and deviation 1 over training")
    season: int = option(1, "steps after which a numeric series repeats itself, for MASE", low=1)


def fit_text(texts: Iterable[Any], options: FieldOptions) -> TextField:
    """Learn the tokens of a text."""
    return TextField(_tokenizer(_told(texts, str, "text"), options))


def _tokenizer(texts: Iterable[str], options: FieldOptions) -> Tokenizer:
    if options.tokens == "byte":
        return ByteTokenizer()
    if options.tokens == "char":
        return CharTokenizer.fit(texts, options.vocabulary, options.min_count)
    if options.tokens == "word":
        return WordTokenizer.fit(texts, options.vocabulary, options.min_count)
    return SubwordTokenizer.fit(texts, options.vocabulary, options.subwords, options.min_count)


def fit_words(items: Iterable[Iterable[str]], options: FieldOptions) -> WordsField:
    """Learn the words, and their characters if asked for."""
    words: Counter[str] = Counter()
    for item in items:
        words.update(item)
    chars: Counter[str] = Counter()
    for word, count in words.items():
        for char in word:
            chars[char] += count
    known = choose(chars, min_count=options.min_count) if options.words == "chars" else None
    return WordsField(choose(words, options.vocabulary, options.min_count), known, options.max_chars)


def fit_label(items: Iterable[Any], options: FieldOptions) -> LabelField:
    """Learn the labels of items, in the order of their names."""
    if options.multi_label:
        return LabelField(sorted(_count(split_labels(item) for item in items)), multi=True)
    counts = _count([item] for item in _told(items, str, "a label"))
    if len(counts) == 1:
        raise DataError(
            f"Every training item has the label `{next(iter(counts))}`; there must be two to tell apart. "
            "Check `data.columns=`, or the order of the file where `data.split` is position."
        )
    return LabelField(sorted(counts), frequent=most_frequent(counts))


def fit_labels(items: Iterable[Iterable[str]], options: FieldOptions) -> LabelsField:
    """Learn the labels of elements, in the order of their names."""
    del options  # labels know none
    counts = _count(items)
    return LabelsField(sorted(counts), most_frequent(counts))


def _count(items: Iterable[Iterable[str]]) -> Counter[str]:
    counts: Counter[str] = Counter()
    for item in items:
        counts.update(item)
        if len(counts) > MOST_LABELS:
            break  # the field says so
    if not counts:
        raise DataError("There is no label in the training data. Check `data.columns=`.")
    return counts


def most_frequent(counts: Counter[str]) -> str:
    """Return the label counted most; of equals, the first by name."""
    return min(counts, key=lambda name: (-counts[name], name))


def fit_value(values: Iterable[Any], options: FieldOptions) -> ValueField:
    """Learn the mean and deviation of a number."""
    if not options.scale:
        return ValueField()
    moments = Moments(1)
    for value in values:
        moments.add(np.full((1, 1), read_value(value)))
    return ValueField(float(moments.mean[0]), float(moments.std[0]))


def fit_vectors(items: Iterable[Any], options: FieldOptions, missing: bool = False) -> VectorsField:
    """Learn each channel's mean, deviation and change from season to season over all steps of all series."""
    moments: Moments | None = None
    changes: Moments | None = None
    for item in items:
        series = read_series(item, moments.width if moments else None, missing)
        moments, changes = moments or Moments(series.shape[1]), changes or Moments(series.shape[1])
        moments.add(series)
        changes.add(np.abs(series[options.season :] - series[: -options.season]))
    if moments is None or changes is None:
        raise DataError("There is no series in the training data.")
    numbers = (part.tolist() for part in (moments.mean, moments.std, changes.mean))
    return VectorsField(moments.width, *numbers, scale=options.scale, missing=missing)


def fit_frames(items: Iterable[Any], options: FieldOptions) -> FramesField:
    """Learn how many keys a frame has."""
    del options  # frames know none
    return FramesField(max((np.asarray(item).shape[-1] for item in itertools.islice(items, 1)), default=88))


class Moments:
    """Mean and deviation of channels in one pass; pieces (T, C) merge by Chan's rule. NaN is left out."""

    def __init__(self, width: int):
        self.width = width
        self.count, self.mean, self._squares = np.zeros(width), np.zeros(width), np.zeros(width)

    def add(self, piece: np.ndarray) -> None:
        known = ~np.isnan(piece)
        count = known.sum(0)
        mean = np.where(known, piece, 0).sum(0) / np.maximum(count, 1)
        squares = np.where(known, piece - mean, 0) ** 2
        total = np.maximum(self.count + count, 1)
        step = mean - self.mean
        self._squares += squares.sum(0) + step**2 * self.count * count / total
        self.mean += step * count / total
        self.count += count

    @property
    def std(self) -> np.ndarray:
        """The deviation of the whole, not of a sample from more."""
        return np.sqrt(self._squares / np.maximum(self.count, 1))


_FITS: dict[str, Callable[[Iterable[Any], FieldOptions], Field]] = {
    "text": fit_text,
    "words": fit_words,
    "label": fit_label,
    "labels": fit_labels,
    "value": fit_value,
    "values": fit_vectors,
    "frames": fit_frames,
}


def fit_fields(
    rows: Iterable[Row], schema: Mapping[str, str], options: FieldOptions, missing: bool = False
) -> dict[str, Field]:
    """Learn a field for each name of the schema (name -> raw kind, in the order of a row's values).

    `rows` is read once a field, so it must start afresh each time it is iterated.
    """
    texts = [i for i, kind in enumerate(schema.values()) if kind == "text" and options.shared]
    shared = fit_text((row.values[i] for row in rows for i in texts), options) if texts else None
    return {
        name: shared if shared and kind == "text" else fit_field(kind, _column(rows, i), options, missing)
        for i, (name, kind) in enumerate(schema.items())
    }


def fit_field(kind: str, values: Iterable[Any], options: FieldOptions, missing: bool = False) -> Field:
    """Learn a field of this raw kind from its values in training."""
    if kind not in _FITS:
        raise ConfigError(f"There is no kind of field `{kind}`. Known: {', '.join(_FITS)}.")
    if kind == "values":
        return fit_vectors(values, options, missing)
    return _FITS[kind](values, options)


def _column(rows: Iterable[Row], i: int) -> Iterable[Any]:
    return (row.values[i] for row in rows)


def _told(values: Iterable[Any], kind: type, what: str) -> Iterable[Any]:
    for value in values:
        if not isinstance(value, kind):
            raise DataError(f"There must be {what}, but there is {type(value).__name__}: {value!r:.60}.")
        yield value


def save_fields(fields: Mapping[str, Field], path: Path) -> None:
    """Write fields to one JSON file, whole or not at all."""
    about = {"format": FORMAT, "fields": {name: field.plain() for name, field in fields.items()}}
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    with open(temporary, "w", encoding="utf-8") as file:
        json.dump(about, file, indent=1)
        file.flush()
        os.fsync(file.fileno())
    os.replace(temporary, path)


def load_fields(path: Path) -> dict[str, Field]:
    """Read fields from a file that `save_fields` wrote."""
    try:
        about = json.loads(path.read_text(encoding="utf-8"))
        version, stored = about["format"], dict(about["fields"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactError(f"{path} holds no fields ({error}). Restore it from a copy.") from None
    if version != FORMAT:
        raise ArtefactError(f"{path} has format {version}, but this weft reads {FORMAT}. Update weft.")
    return {name: field_from_plain(values) for name, values in stored.items()}
