"""Fields: each turns one raw value of a row into an array, and back, by what it learned in training."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from weft.core.config import option
from weft.core.errors import ArtefactError, DataError
from weft.core.registry import Registry
from weft.data.tokenizers import Tokenizer, tokenizer_from_plain
from weft.data.vocabulary import BOS, EOS, PAD, SPECIALS, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "SPECIALS",
    "UNK",
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
]

UNSEEN = -1  # the id of a label not seen in training: no prediction equals it
MOST_LABELS = 1 << 16
WIDEST = 1 << 16  # numbers a step of a series
LONGEST_WORD = 1 << 10  # characters kept of a word


@dataclass(frozen=True)
class Limits:
    """What becomes of items that are empty or too long. Cutting keeps the first elements of each sequence."""

    max_length: int | None = option(None, "longest sequence, in tokens or steps; default no limit", low=1)
    over_length: str = option("cut", "what becomes of a longer one", choices=("cut", "drop"))
    empty: str = option("drop", "what becomes of an item of no elements", choices=("drop", "keep"))


class Field(Protocol):
    """Encodes one raw value.

    ragged   whether encoding gives a sequence (T, *element); otherwise it gives `element` alone
    dtype    the type of the array
    unknown  counts what training had not seen in a raw value, given also what it was encoded to
    """

    @property
    def kind(self) -> str: ...

    @property
    def ragged(self) -> bool: ...

    @property
    def dtype(self) -> np.dtype[Any]: ...

    @property
    def element(self) -> tuple[int, ...]: ...

    def encode(self, raw: Any) -> np.ndarray: ...

    def decode(self, array: Any) -> Any: ...

    def unknown(self, raw: Any, encoded: np.ndarray) -> int: ...

    def plain(self) -> dict[str, Any]: ...


kinds: Registry[Callable[[Mapping[str, Any]], Field]] = Registry("kind of field")


def field_from_plain(values: Mapping[str, Any]) -> Field:
    """Rebuild a field from what its `plain()` gave."""
    try:
        return kinds[values["kind"]](values)
    except (KeyError, TypeError, AttributeError) as error:
        raise ArtefactError(f"A stored field is damaged ({error}). Restore its file from a copy.") from None


class TextField:
    """Text (or a sequence of symbols) as token ids (T,) int32, without BOS and EOS."""

    kind, ragged, dtype, element = "text", True, np.dtype(np.int32), ()

    def __init__(self, tokenizer: Tokenizer):
        self.tokenizer = tokenizer

    @property
    def size(self) -> int:
        """The size of the vocabulary, special ids included."""
        return self.tokenizer.size

    def encode(self, raw: Any) -> np.ndarray:
        return np.array(self.tokenizer.encode(_text(raw, "Text")), self.dtype)

    def decode(self, array: Any) -> str:
        return self.tokenizer.decode(_list(array))

    def tokens(self, array: Any) -> list[str]:
        """Return the tokens as they are shown, one an id."""
        return self.tokenizer.tokens(_list(array))

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return int((encoded == UNK).sum())

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "tokenizer": self.tokenizer.plain()}


class WordsField:
    """Words as (T, 1 + W) int32: the word's id, then the ids of W characters (none without `chars`).

    Of a word longer than W the first and the last W / 2 characters are kept: both ends tell its class.
    """

    kind, ragged, dtype = "words", True, np.dtype(np.int32)

    def __init__(self, words: Vocabulary, chars: Vocabulary | None = None, max_chars: int = 16):
        if not 1 <= max_chars <= LONGEST_WORD:
            raise DataError(f"`max_chars` must be from 1 to {LONGEST_WORD}, but is {max_chars}. Try 16.")
        self.words, self.chars, self.max_chars = words, chars, max_chars
        self.element = (1 + (max_chars if chars else 0),)

    @property
    def size(self) -> int:
        """The number of word ids, special ids included."""
        return self.words.size

    def encode(self, raw: Any) -> np.ndarray:
        words = [_text(word, "A word") for word in _strings(raw, "Words")]
        array = np.zeros((len(words), *self.element), self.dtype)
        array[:, 0] = self.words.ids(words)
        if self.chars:
            for row, word in zip(array, words, strict=True):
                ids = self.chars.ids(self._shorten(word))
                row[1 : 1 + len(ids)] = ids
        return array

    def _shorten(self, word: str) -> str:
        if len(word) <= self.max_chars:
            return word
        tail = self.max_chars // 2
        return word[: self.max_chars - tail] + word[len(word) - tail :]

    def decode(self, array: Any) -> list[str]:
        return self.words.names(_list(np.asarray(array)[:, 0]))

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return int((encoded[:, 0] == UNK).sum())

    def plain(self) -> dict[str, Any]:
        chars = list(self.chars.words) if self.chars else None
        words = list(self.words.words)
        return {"kind": self.kind, "words": words, "chars": chars, "max_chars": self.max_chars}


class LabelField:
    """One label as its number () int64, -1 if unseen; or several, as ones among zeros (K,) float32.

    Several unseen labels leave no mark in the array; `unknown` counts them, for scores that must.
    `frequent` is the one label that stands most often in training, if that is known.
    """

    kind = "label"

    def __init__(self, names: Sequence[str], multi: bool = False, frequent: str | None = None):
        self.names, self._ids = _label_table(names)
        self.frequent = frequent
        self.multi, self.ragged = multi, False
        self.element = (len(self.names),) if multi else ()
        self.dtype = np.dtype(np.float32 if multi else np.int64)

    @property
    def size(self) -> int:
        return len(self.names)

    def encode(self, raw: Any) -> np.ndarray:
        if not self.multi:
            return np.array(self._ids.get(_text(raw, "A label"), UNSEEN), self.dtype)
        array = np.zeros(self.element, self.dtype)
        array[[self._ids[name] for name in split_labels(raw) if name in self._ids]] = 1
        return array

    def decode(self, array: Any) -> str | list[str]:
        if self.multi:
            return [name for name, on in zip(self.names, np.asarray(array), strict=True) if on > 0.5]
        return _label_name(self.names, int(array))

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        if self.multi:
            return sum(name not in self._ids for name in split_labels(raw))
        return int(encoded == UNSEEN)

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names), "multi": self.multi, "frequent": self.frequent}


class LabelsField:
    """One label an element as numbers (T,) int64, -1 where unseen; `frequent` as in LabelField."""

    kind, ragged, dtype, element = "labels", True, np.dtype(np.int64), ()

    def __init__(self, names: Sequence[str], frequent: str | None = None):
        self.names, self._ids = _label_table(names)
        self.frequent = frequent

    @property
    def size(self) -> int:
        return len(self.names)

    def encode(self, raw: Any) -> np.ndarray:
        return np.array([self._ids.get(name, UNSEEN) for name in _strings(raw, "Labels")], self.dtype)

    def decode(self, array: Any) -> list[str]:
        return [_label_name(self.names, i) for i in _list(array)]

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return int((encoded == UNSEEN).sum())

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "names": list(self.names), "frequent": self.frequent}


class ValueField:
    """A number as (value - mean) / std () float32."""

    kind, ragged, dtype, element = "value", False, np.dtype(np.float32), ()

    def __init__(self, mean: float = 0.0, std: float = 1.0):
        self.mean, self.std = float(mean), float(std) or 1.0

    def encode(self, raw: Any) -> np.ndarray:
        value = read_value(raw)
        return np.array((value - self.mean) / self.std, self.dtype)

    def decode(self, array: Any) -> float:
        return float(array) * self.std + self.mean

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return 0

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "mean": self.mean, "std": self.std}


class VectorsField:
    """A numeric series (T, C) float32, each channel as (x - mean) / std if scaled.

    `change` is the mean |x_t - x_{t - season}| of each channel in training, 0 where it is not known.
    NaN is refused unless declared as missing; then it becomes the channel's training mean.
    """

    kind, ragged, dtype = "values", True, np.dtype(np.float32)

    def __init__(
        self,
        width: int,
        mean: Sequence[float] | None = None,
        std: Sequence[float] | None = None,
        change: Sequence[float] | None = None,
        scale: bool = True,
        missing: bool = False,
    ):
        check_width(width)
        self.width, self.scale, self.missing, self.element = width, scale, missing, (width,)
        self.mean = np.array([0.0] * width if mean is None else mean, np.float64)
        self.std = np.array([1.0] * width if std is None else std, np.float64)
        self.std[self.std == 0] = 1  # a constant channel becomes zeros
        self.change = np.array([0.0] * width if change is None else change, np.float64)

    def encode(self, raw: Any) -> np.ndarray:
        series = read_series(raw, self.width, self.missing)
        series = np.where(np.isnan(series), self.mean, series) if self.missing else series
        return ((series - self.mean) / self.std if self.scale else series).astype(self.dtype)

    def decode(self, array: Any) -> np.ndarray:
        series = np.asarray(array, np.float64)
        return series * self.std + self.mean if self.scale else series

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return 0

    def plain(self) -> dict[str, Any]:
        numbers = {name: getattr(self, name).tolist() for name in ("mean", "std", "change")}
        flags = {"scale": self.scale, "missing": self.missing}
        return {"kind": self.kind, "width": self.width, **numbers, **flags}


class FramesField:
    """A piano roll (T, width) uint8: 1 where a key sounds."""

    kind, ragged, dtype = "frames", True, np.dtype(np.uint8)

    def __init__(self, width: int = 88):
        check_width(width)
        self.width, self.element = width, (width,)

    def encode(self, raw: Any) -> np.ndarray:
        frames = np.asarray(raw)
        if frames.ndim != 2 or frames.shape[1] != self.width:
            raise DataError(f"Frames have shape (steps, {self.width}), but these have {frames.shape}.")
        if not np.isin(frames, (0, 1)).all():
            raise DataError("Frames hold 0 and 1 only. Mark sounding keys with 1.")
        return frames.astype(self.dtype)

    def decode(self, array: Any) -> np.ndarray:
        return np.asarray(array, self.dtype)

    def unknown(self, raw: Any, encoded: np.ndarray) -> int:
        return 0

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "width": self.width}


@kinds.register("text")
def _text_field(values: Mapping[str, Any]) -> Field:
    return TextField(tokenizer_from_plain(values["tokenizer"]))


@kinds.register("words")
def _words_field(values: Mapping[str, Any]) -> Field:
    chars = None if values["chars"] is None else Vocabulary(values["chars"])
    return WordsField(Vocabulary(values["words"]), chars, values["max_chars"])


@kinds.register("label")
def _label_field(values: Mapping[str, Any]) -> Field:
    return LabelField(values["names"], values["multi"], values.get("frequent"))


@kinds.register("labels")
def _labels_field(values: Mapping[str, Any]) -> Field:
    return LabelsField(values["names"], values.get("frequent"))


@kinds.register("value")
def _value_field(values: Mapping[str, Any]) -> Field:
    return ValueField(values["mean"], values["std"])


@kinds.register("values")
def _vectors_field(values: Mapping[str, Any]) -> Field:
    mean, std, change = values["mean"], values["std"], values.get("change")
    return VectorsField(values["width"], mean, std, change, values["scale"], values["missing"])


@kinds.register("frames")
def _frames_field(values: Mapping[str, Any]) -> Field:
    return FramesField(values["width"])


def split_labels(raw: Any) -> list[str]:
    """Return the labels of an item, without repeats: a list, or text with commas between them."""
    labels = [part.strip() for part in raw.split(",")] if isinstance(raw, str) else _strings(raw, "Labels")
    return list(dict.fromkeys(label for label in labels if label))


def read_value(raw: Any) -> float:
    """Return a finite number."""
    try:
        value = float(raw)
    except (TypeError, ValueError):
        raise DataError(f"A value must be a number, but is {raw!r}.") from None
    if not np.isfinite(value):
        raise DataError(f"A value must be finite, but is {value}. Remove the line.")
    return value


def read_series(raw: Any, width: int | None, missing: bool) -> np.ndarray:
    """Return a series as float64 (T, C); a plain list of numbers has one channel."""
    try:
        series = np.asarray(raw, np.float64)
    except (TypeError, ValueError):
        raise DataError("A series must be numbers, as many in every step.") from None
    series = series[:, None] if series.ndim == 1 else series
    if series.ndim != 2 or (width is not None and series.shape[1] != width):
        wanted = "some" if width is None else width
        raise DataError(f"A series must have shape (steps, {wanted}), but has {series.shape}.")
    _check_finite(series, missing)
    return series


def _check_finite(series: np.ndarray, missing: bool) -> None:
    bad = np.isinf(series) if missing else ~np.isfinite(series)
    if bad.any():
        step, channel = np.argwhere(bad)[0]
        raise DataError(
            f"Step {step + 1}, channel {channel + 1} of the series is {series[step, channel]}. "
            "Numbers must be finite; declare missing ones with `data.missing=NaN`."
        )


def check_width(width: int) -> None:
    """Refuse a series without channels, or with absurdly many."""
    if not 1 <= width <= WIDEST:
        raise DataError(
            f"A series has 1 to {WIDEST:,} numbers a step, but this one has {width:,}. "
            "If steps and channels are swapped, transpose it."
        )


def _label_table(names: Sequence[str]) -> tuple[tuple[str, ...], dict[str, int]]:
    if len(names) > MOST_LABELS:
        raise DataError(
            f"There are at most {MOST_LABELS:,} different labels, but here are {len(names):,}. "
            "Is this column text, or a number? Choose another with `data.columns=`."
        )
    return tuple(names), {name: i for i, name in enumerate(names)}


def _label_name(names: Sequence[str], number: int) -> str:
    return names[number] if number >= 0 else SPECIALS[UNK]


def _text(raw: Any, what: str) -> str:
    if not isinstance(raw, str):
        raise DataError(f"{what} must be text, but is {type(raw).__name__}: {raw!r:.60}.")
    return raw


def _strings(raw: Any, what: str) -> list[str]:
    if isinstance(raw, str) or not isinstance(raw, Sequence | np.ndarray):
        raise DataError(f"{what} must be a list of text, but are {type(raw).__name__}: {raw!r:.60}.")
    return [str(item) for item in raw]


def _list(array: Any) -> list[int]:
    return np.asarray(array).tolist()
