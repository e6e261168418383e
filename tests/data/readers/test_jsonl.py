"""JSONL: objects, lists, arrays, and what is refused."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource, collect


def source(tmp_path, content, kinds=("text", "label"), **options):
    path = tmp_path / "a.jsonl"
    path.write_text(content, encoding="utf-8", newline="")
    return RowSource(path, ReadOptions(**options), kinds)


def test_the_first_keys_are_read_by_name(tmp_path):
    rows = source(tmp_path, '{"t": "a", "l": "x", "z": 1}\n\n{"l": 2, "t": "b"}\n')
    assert [(row.number, *row.values) for row in rows] == [(1, "a", "x"), (3, "b", "2")]
    assert rows.description.endswith("jsonl; text from key `t`, label from key `l`")
    assert rows.counts.blank == 1


def test_keys_can_be_told(tmp_path):
    rows = source(tmp_path, '{"id": 1, "t": "a", "l": ["x", "y"]}\n', columns=("t", "l"))
    assert [row.values for row in rows] == [("a", ["x", "y"])]


def test_lists_are_rows_too(tmp_path):
    assert [row.values for row in source(tmp_path, '["a", "x"]\n["b", "y"]\n')] == [("a", "x"), ("b", "y")]


def test_words_labels_and_lists_of_sentences(tmp_path):
    rows = source(tmp_path, '{"w": ["New York", "is"], "l": ["N", "V"]}\n', ("words", "labels"))
    assert [row.values for row in rows] == [(["New York", "is"], ["N", "V"])]
    joined = source(tmp_path, '{"t": ["One.", "Two."]}\n', ("text",))
    assert [row.values for row in joined] == [("One. Two.",)]
    assert joined.counts.joined == 1


def test_arrays_of_numbers(tmp_path):
    rows = list(
        source(tmp_path, '{"v": [[1, 2], [3, 4.5]], "y": 7}\n{"v": [1], "y": 8}\n', ("values", "value"))
    )
    assert np.array_equal(rows[0].values[0], np.array([[1, 2], [3, 4.5]], np.float32))
    assert rows[0].values[1] == 7.0
    assert rows[1].values[0].shape == (1, 1)


def test_null_is_missing_where_declared(tmp_path):
    rows = list(source(tmp_path, '{"v": [1, null]}\n', ("values",), missing=("null",)))
    assert np.isnan(rows[0].values[0][1, 0])


BROKEN = {
    "no JSON": ('{"t": "a", "l": "x"}\n{"t": \n', r"a\.jsonl, line 2: is not JSON \("),
    "an array": (
        '[{"t": "a", "l": "x"}, {"t": "b", "l": "y"}]\n',
        r"line 1: is one array of objects\. .*jq -c",
    ),
    "a bare word": ('{"t": "a", "l": "x"}\n3\n', r"line 2: holds '3', not an object"),
    "no such key": ('{"t": "a", "l": "x"}\n{"t": "a", "lab": "x"}\n', r"line 2: has no key `l`\."),
    "an empty object": ('{"t": "a", "l": "x"}\n{}\n', r"line 2: has no key `t`\. It is empty"),
    "a wrong type": ('{"t": 3, "l": "x"}\n', r"line 1: Text is wanted, but 3 stands there"),
    "too few keys": ('{"t": "a"}\n', r"has the keys t, but 2 are wanted \(text, label\)"),
    "deep": ("[" * 100_000 + "\n", r"line 1: is not JSON \(nested too deeply\)"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path, what):
    content, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        list(source(tmp_path, content))


@pytest.mark.parametrize("word", ["NaN", "Infinity", "1e999"])
def test_numbers_must_be_finite(tmp_path, word):
    with pytest.raises(DataError, match=r"line 1: .* is not a finite number"):
        list(source(tmp_path, f'{{"v": [1, {word}]}}\n', ("values",)))


def test_too_few_named_keys_are_refused(tmp_path):
    with pytest.raises(DataError, match=r"must name 2 keys \(text, label\), but is t"):
        list(source(tmp_path, '{"t": "a", "l": "x"}\n', columns=("t",)))


def test_every_broken_line_is_found(tmp_path):
    good, faults = collect(source(tmp_path, '{"t": "a", "l": "x"}\nx\n[]\n{"t": "b", "l": "x"}\n'))
    assert len(good) == 2
    assert [fault.line for fault in faults.faults] == [2, 3]
