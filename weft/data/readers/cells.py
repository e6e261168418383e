"""Turn what stands in a file into the raw value a kind asks for, or say why it cannot be."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from typing import Any

import numpy as np

from weft.data.lines import LineCounts
from weft.data.rows import ReadOptions

KEYS = 88  # of a piano
_LARGEST = float(np.finfo(np.float32).max)


def convert(kind: str, raw: Any, options: ReadOptions, counts: LineCounts) -> Any:
    """Return `raw` as a value of `kind`; ValueError says what is wrong with it."""
    return _CONVERTERS[kind](raw, options, counts)


def number(raw: Any, missing: tuple[str, ...]) -> float:
    """Read one finite number; a word declared as missing gives NaN."""
    if raw is None or isinstance(raw, str):
        return _spoken_number("null" if raw is None else raw.strip(), missing)
    if isinstance(raw, bool) or not isinstance(raw, int | float | np.integer | np.floating):
        raise ValueError(f"{_show(raw)} is not a number.")
    return _finite(float(raw), raw, missing)


def _spoken_number(word: str, missing: tuple[str, ...]) -> float:
    if word in missing:
        return math.nan
    try:
        value = float(word) if "_" not in word else None
    except ValueError:
        value = None
    if value is None:
        way_out = (
            f"If it stands for a missing number, say data.missing={word}." if word else "A number is missing."
        )
        raise ValueError(f"{_show(word)} is not a number. {way_out}")
    return _finite(value, word, missing)


def _finite(value: float, raw: Any, missing: tuple[str, ...]) -> float:
    if math.isnan(value) and any(word.lower() == "nan" for word in missing):
        return value
    if not math.isfinite(value):
        raise ValueError(f"{_show(raw)} is not a finite number. Mend it, or declare it: data.missing={raw}.")
    if abs(value) > _LARGEST:
        raise ValueError(f"{_show(raw)} is beyond 32-bit numbers (3.4e38). Scale the data.")
    return value


def _text(raw: Any, options: ReadOptions, counts: LineCounts) -> str:
    if isinstance(raw, list | tuple) and all(isinstance(part, str) for part in raw):
        counts.joined += 1
        raw = " ".join(raw)
    if not isinstance(raw, str):
        raise ValueError(f"Text is wanted, but {_show(raw)} stands there. Choose columns with data.columns=.")
    return normal_form(raw, options)


def normal_form(text: str, options: ReadOptions) -> str:
    """Return text in the Unicode normal form asked for."""
    if options.normalize == "none":
        return text
    return unicodedata.normalize("NFC" if options.normalize == "nfc" else "NFKC", text)


def _words(raw: Any, options: ReadOptions, counts: LineCounts) -> list[str]:
    parts = raw.split() if isinstance(raw, str) else raw
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError(
            f"Words are wanted, but {_show(raw)} stands there. Choose columns with data.columns=."
        )
    return [normal_form(part, options) for part in parts]


def _label(raw: Any, options: ReadOptions, counts: LineCounts) -> str | list[str]:
    if isinstance(raw, list | tuple):
        return [_one_label(part) for part in raw]
    return _one_label(raw)


def _one_label(raw: Any) -> str:
    if isinstance(raw, bool):
        return str(raw).lower()
    if isinstance(raw, int | np.integer):
        return str(int(raw))
    if not isinstance(raw, str):
        raise ValueError(
            f"A label is wanted, but {_show(raw)} stands there. Choose columns with data.columns=."
        )
    if not raw.strip():
        raise ValueError("The label is empty. Give one, or leave the line out.")
    return raw.strip()


def _value(raw: Any, options: ReadOptions, counts: LineCounts) -> float:
    return number(raw, options.missing)


def _values(raw: Any, options: ReadOptions, counts: LineCounts) -> np.ndarray:
    """Return (T, C) float32 from an array, nested lists or numbers between spaces."""
    array = _rectangle(raw.split() if isinstance(raw, str) else raw, options.missing)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise ValueError(f"A series has time and channels (2 axes), but this has {array.ndim}.")
    return array.astype(np.float32)


def _rectangle(raw: Any, missing: tuple[str, ...]) -> np.ndarray:
    if isinstance(raw, np.ndarray) and raw.dtype.kind in "fiub":
        array = raw.astype(np.float64)
    else:
        array = _nested(raw, missing)
    bad = np.isinf(array) | (np.abs(array) > _LARGEST) | (np.isnan(array) & (not missing))
    if bad.any():
        place = tuple(int(i) for i in np.argwhere(bad)[0])
        raise ValueError(
            f"{array[place]} stands at step {place[0] + 1}. Mend it, or declare NaN: data.missing=NaN."
        )
    return array


def _nested(raw: Any, missing: tuple[str, ...]) -> np.ndarray:
    def read(part: Any) -> Any:
        return [read(item) for item in part] if isinstance(part, list | tuple) else number(part, missing)

    if not isinstance(raw, list | tuple):
        raise ValueError(
            f"Numbers are wanted, but {_show(raw)} stands there. Choose columns with data.columns=."
        )
    numbers = read(raw)
    try:
        return np.array(numbers, dtype=np.float64)
    except ValueError:
        raise ValueError(
            "The steps of this series have different numbers of channels. Give each the same."
        ) from None


def _frames(raw: Any, options: ReadOptions, counts: LineCounts) -> np.ndarray:
    """Return (T, 88) uint8 of keys pressed."""
    array = np.asarray(raw) if isinstance(raw, np.ndarray) else _rectangle(raw, ())
    if array.ndim != 2 or array.shape[1] != KEYS:
        raise ValueError(f"A piano roll has {KEYS} keys a frame, but this has shape {array.shape}.")
    if array.dtype.kind not in "fiub" or not np.isin(array, (0, 1)).all():
        raise ValueError("A piano roll holds only 0 and 1. Set every pressed key to 1.")
    return array.astype(np.uint8)


def _show(raw: Any) -> str:
    text = repr(raw)
    return text if len(text) <= 40 else f"{text[:37]}..."


_CONVERTERS: dict[str, Callable[[Any, ReadOptions, LineCounts], Any]] = {
    "text": _text,
    "words": _words,
    "labels": _words,
    "label": _label,
    "value": _value,
    "values": _values,
    "frames": _frames,
}
