"""NPZ: items cut by lengths, targets beside, false sizes and objects refused."""

import io
import zipfile

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource

KINDS = ("values", "value")
GOOD = {
    "values": np.arange(10.0).reshape(5, 2),
    "lengths": np.array([2, 0, 3]),
    "target": np.array([1.0, 2, 3]),
}


def source(tmp_path, arrays, kinds=KINDS, **options):
    path = tmp_path / "a.npz"
    np.savez(path, **arrays)
    return RowSource(path, ReadOptions(**options), kinds)


def test_items_are_cut_by_their_lengths(tmp_path):
    rows = list(source(tmp_path, GOOD))
    assert [row.values[0].tolist() for row in rows] == [[[0, 1], [2, 3]], [], [[4, 5], [6, 7], [8, 9]]]
    assert [row.values[1] for row in rows] == [1.0, 2.0, 3.0]
    assert [row.number for row in rows] == [1, 2, 3]


def test_labels_may_be_numbers_or_words(tmp_path):
    for target in (np.array([4, 5, 6]), np.array(["4", "5", "6"])):
        rows = source(tmp_path, {**GOOD, "target": target}, ("values", "label"))
        assert [row.values[1] for row in rows] == ["4", "5", "6"]


def test_equal_lengths_may_be_an_axis(tmp_path):
    rows = source(tmp_path, {"values": np.ones((4, 3, 2))}, ("values",))
    assert [row.values[0].shape for row in rows] == [(3, 2)] * 4


def test_one_series_needs_no_lengths(tmp_path):
    assert [row.values[0].shape for row in source(tmp_path, {"values": np.ones(7)}, ("values",))] == [(7, 1)]


BROKEN = {
    "no values": ({"value": np.ones(3)}, r"must hold an array `values`\. It holds: value"),
    "no target": ({"values": np.ones((3, 1))}, r"must hold an array `target`"),
    "short lengths": (
        {**GOOD, "lengths": np.array([2, 2])},
        r"`lengths` must add up to the 5 steps .* not 4",
    ),
    "negative lengths": ({**GOOD, "lengths": np.array([6, -1])}, "must hold one whole number from 0"),
    "lengths with a point": ({**GOOD, "lengths": np.array([2.0, 3.0])}, "must hold one whole number from 0"),
    "too few targets": ({**GOOD, "target": np.ones(2)}, r"one entry an item \(3\), but has 2"),
    "NaN": (
        {**GOOD, "values": np.full((5, 2), np.nan)},
        r"line 1: nan stands at step 1\. Mend it, or declare NaN",
    ),
    "a NaN target": ({**GOOD, "target": np.array([1, np.nan, 3])}, "line 2: nan is not a finite number"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path, what):
    arrays, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        list(source(tmp_path, arrays))


def test_declared_missing_numbers_pass(tmp_path):
    rows = list(source(tmp_path, {**GOOD, "values": np.full((5, 2), np.nan)}, missing=("NaN",)))
    assert np.isnan(rows[0].values[0]).all()


def test_python_objects_are_refused(tmp_path):
    path = tmp_path / "a.npz"
    np.savez(path, values=np.array([{"a": 1}], dtype=object))
    with pytest.raises(DataError, match="it holds Python objects; save plain arrays"):
        list(RowSource(path, kinds=("values",)))


def test_a_false_size_is_refused_before_allocating(tmp_path):
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(head, {"descr": "<f8", "fortran_order": False, "shape": (10**13, 2)})
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("values.npy", head.getvalue() + b"\0" * 64)
    with pytest.raises(DataError, match=r"`values\.npy` claims 160,000,000,000,000 bytes, but holds 192"):
        list(RowSource(path, kinds=("values",)))


@pytest.mark.parametrize("content", [b"", b"no archive", b"PK\x03\x04 nearly"])
def test_what_is_no_archive_is_refused(tmp_path, content):
    path = tmp_path / "a.npz"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.npz is not a readable \.npz"):
        list(RowSource(path, kinds=("values",)))


def test_an_archive_of_other_things_is_refused(tmp_path):
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello")
    with pytest.raises(DataError, match=r"a\.npz is not a readable \.npz"):
        list(RowSource(path, kinds=("values",)))
