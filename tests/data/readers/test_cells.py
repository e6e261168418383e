"""Raw values of every kind: what is taken, and how the rest is refused."""

import math

import numpy as np
import pytest

from weft.data.lines import LineCounts
from weft.data.readers.cells import convert
from weft.data.rows import ReadOptions


def take(kind, raw, **options):
    return convert(kind, raw, ReadOptions(**options), LineCounts())


@pytest.mark.parametrize(
    ("kind", "raw", "value"),
    [
        ("text", " a b ", " a b "),
        ("text", ["a", "b c"], "a b c"),
        ("words", " a  b ", ["a", "b"]),
        ("words", ["a b", "c"], ["a b", "c"]),
        ("labels", "A B", ["A", "B"]),
        ("label", " x ", "x"),
        ("label", 3, "3"),
        ("label", True, "true"),
        ("label", ["x", "y"], ["x", "y"]),
        ("value", " 1.5e2 ", 150.0),
        ("value", 2, 2.0),
        ("value", np.float32(0.5), 0.5),
    ],
)
def test_what_is_taken(kind, raw, value):
    assert take(kind, raw) == value


@pytest.mark.parametrize(
    ("kind", "raw", "message"),
    [
        ("text", 3, r"Text is wanted, but 3 stands there\. Choose columns"),
        ("text", None, "Text is wanted, but None"),
        ("words", [1, 2], r"Words are wanted, but \[1, 2\]"),
        ("label", "  ", r"The label is empty\. Give one"),
        ("label", 1.5, r"A label is wanted, but 1\.5"),
        ("label", ["x", ""], "The label is empty"),
        ("value", "", r"'' is not a number\. A number is missing"),
        ("value", "abc", r"'abc' is not a number\. If it stands for a missing number, say data\.missing=abc"),
        ("value", "1_000", "'1_000' is not a number"),
        ("value", True, "True is not a number"),
        ("value", None, r"'null' is not a number.*data\.missing=null"),
        ("value", "nan", r"'nan' is not a finite number\. Mend it, or declare it: data\.missing=nan"),
        ("value", "inf", "'inf' is not a finite number"),
        ("value", float("nan"), "nan is not a finite number"),
        ("value", "1e300", r"'1e300' is beyond 32-bit numbers \(3\.4e38\)\. Scale the data"),
        ("values", "1 x", "'x' is not a number"),
        ("values", [[1, 2], [3]], r"different numbers of channels\. Give each the same"),
        ("values", [[[1]]], r"time and channels \(2 axes\), but this has 3"),
        ("values", {"a": 1}, "Numbers are wanted"),
        (
            "values",
            np.array([[1.0], [np.nan]]),
            r"nan stands at step 2\. Mend it, or declare NaN: data\.missing=NaN",
        ),
        ("values", np.array([np.inf]), "inf stands at step 1"),
        ("values", np.array(["a"]), "Numbers are wanted"),
        ("frames", np.zeros((3, 87)), r"88 keys a frame, but this has shape \(3, 87\)"),
        ("frames", np.full((1, 88), 2), "only 0 and 1"),
    ],
)
def test_what_is_refused(kind, raw, message):
    with pytest.raises(ValueError, match=message):
        take(kind, raw)


def test_declared_words_are_missing_numbers():
    assert math.isnan(take("value", "NA", missing=("NA",)))
    assert math.isnan(take("value", float("nan"), missing=("NaN",)))
    found = take("values", [[1, None], [2.5, "NA"]], missing=("NA", "null"))
    assert np.array_equal(found, np.array([[1, np.nan], [2.5, np.nan]], np.float32), equal_nan=True)


def test_a_word_not_declared_is_still_refused():
    with pytest.raises(ValueError, match="'nan' is not a finite number"):
        take("value", "nan", missing=("NA",))


@pytest.mark.parametrize(
    ("raw", "shape"),
    [
        ("1 2 3", (3, 1)),
        ([1, 2], (2, 1)),
        ([[1, 2, 3]], (1, 3)),
        (np.ones((4, 2)), (4, 2)),
        (np.ones(4), (4, 1)),
    ],
)
def test_series_have_time_and_channels(raw, shape):
    found = take("values", raw)
    assert (found.shape, found.dtype) == (shape, np.float32)


def test_frames_are_bytes():
    found = take("frames", np.eye(2, 88))
    assert (found.dtype, found.sum()) == (np.uint8, 2)


def test_a_normal_form_joins_what_is_taken_apart():
    assert take("text", "e\u0301", normalize="nfc") == "\u00e9"
    assert take("words", "\ufb01n x", normalize="nfkc") == ["fin", "x"]
    assert take("text", "e\u0301") == "e\u0301"
