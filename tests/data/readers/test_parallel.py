"""Parallel text: pairs by line, and where two files part."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.data.readers.parallel import suspicious
from weft.data.source import RowSource, collect


def pair(tmp_path, first, second):
    paths = (tmp_path / "a.en", tmp_path / "a.de")
    for path, lines in zip(paths, (first, second), strict=True):
        path.write_bytes("".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"))
    return paths


def sentences(count, seed=0):
    """Return sentences of 10 to 200 characters and translations about a tenth longer."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(10, 200, count)
    return ["x" * n for n in sizes], ["y" * int(n * rng.normal(1.1, 0.05)) for n in sizes]


def test_lines_are_paired(tmp_path):
    source = RowSource(pair(tmp_path, ["a", "", "c"], ["x", "y", "z"]), kinds=("text", "text"))
    assert [(row.number, *row.values) for row in source] == [(1, "a", "x"), (2, "", "y"), (3, "c", "z")]
    assert "parallel; text from" in source.description


def test_words_and_labels_may_be_parallel(tmp_path):
    source = RowSource(pair(tmp_path, ["a b"], ["X Y"]), kinds=("words", "labels"))
    assert [row.values for row in source] == [(["a", "b"], ["X", "Y"])]


def test_a_lost_line_is_found(tmp_path):
    first, second = sentences(300)
    del second[120]
    source = RowSource(pair(tmp_path, first, second), kinds=("text", "text"))
    with pytest.raises(
        DataError, match=r"a\.en has 300 lines, but .*a\.de has 299\. The first suspicious"
    ) as caught:
        list(source)
    found = int(str(caught.value).split("suspicious line is ")[1].split()[0])
    assert abs(found - 121) <= 3


def test_an_empty_line_too_many_is_found(tmp_path):
    first, second = sentences(50)
    second.insert(20, "")
    source = RowSource(pair(tmp_path, first, second), kinds=("text", "text"))
    with pytest.raises(DataError, match=r"has 50 lines, but .* has 51\. The first suspicious line is 21 \("):
        list(source)


def test_a_lost_end_is_found(tmp_path):
    first, second = sentences(50)
    source = RowSource(pair(tmp_path, first, second[:45]), kinds=("text", "text"))
    with pytest.raises(DataError, match=r"suspicious line is 46 \(\d+ characters and no line\)"):
        list(source)


def test_equal_lengths_everywhere_hold_nothing_suspicious_but_the_end():
    assert suspicious(np.full(100, 7), np.full(90, 7)) == 91
    assert suspicious(np.array([1, 2]), np.array([1])) == 2


def test_the_number_of_files_is_held(tmp_path):
    paths = pair(tmp_path, ["a"], ["b"])
    with pytest.raises(DataError, match=r"Parallel text needs 1 files \(text\), but 2 are given"):
        list(RowSource(paths, kinds=("text",)))


def test_broken_lines_keep_the_pairs_together(tmp_path):
    paths = pair(tmp_path, ["a", "b\udcff", "c", "d"], ["x", "y", "z\0", "w"])
    good, faults = collect(RowSource(paths, kinds=("text", "text")))
    assert [row.values for row in good] == [("a", "x"), ("d", "w")]
    assert [(fault.path[-4:], fault.line) for fault in faults.faults] == [("a.en", 2), ("a.de", 3)]


def test_an_empty_file_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.de is empty"):
        list(RowSource(pair(tmp_path, ["a"], []), kinds=("text", "text")))
