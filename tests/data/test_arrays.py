import numpy as np
import pytest

from weft.data.arrays import ArrayFile, ColumnWriter, RaggedArray, open_ragged, write_ragged

ITEMS = [np.array([1, 2, 3]), np.array([], np.int64), np.array([4])]


def test_items_end_to_end():
    ragged = RaggedArray.pack(ITEMS)
    assert ragged.flat.tolist() == [1, 2, 3, 4]
    assert len(ragged) == 3
    assert ragged.lengths.tolist() == [3, 0, 1]
    assert [item.tolist() for item in ragged.take([2, 1, -3])] == [[4], [], [1, 2, 3]]
    assert [item.tolist() for item in ragged] == [[1, 2, 3], [], [4]]


def test_items_of_one_entry():
    column = RaggedArray(np.array([[1, 2], [3, 4]]))
    assert len(column) == 2
    assert column.lengths.tolist() == [1, 1]
    assert column[1].tolist() == [3, 4]


def test_beyond_the_end():
    with pytest.raises(IndexError):
        RaggedArray.pack(ITEMS)[3]


@pytest.mark.parametrize("element", [(), (2,)])
@pytest.mark.parametrize("count", [0, 1, 1000])
def test_written_and_mapped(tmp_path, element, count):
    items = [np.full((i % 4, *element), i, np.int32) for i in range(count)]
    written = write_ragged(iter(items), tmp_path / "x", np.int32, element)
    again = open_ragged(tmp_path / "x")
    assert len(written) == len(again) == count
    assert again.flat.dtype == np.int32
    assert again.flat.shape == (sum(map(len, items)), *element)
    assert all(np.array_equal(a, b) for a, b in zip(again, items, strict=True))
    assert np.array_equal(np.load(tmp_path / "x.npy"), again.flat)


def test_single_entries(tmp_path):
    writer = ColumnWriter(tmp_path / "y", np.dtype(np.float32), (), ragged=False)
    for value in (1.5, 2.5):
        writer.append(np.array(value))
    writer.close()
    column = open_ragged(tmp_path / "y")
    assert column.offsets is None
    assert column.flat.tolist() == [1.5, 2.5]


def test_what_is_mapped_cannot_be_changed(tmp_path):
    ragged = write_ragged(ITEMS, tmp_path / "x", np.int64)
    with pytest.raises(ValueError, match="read-only"):
        ragged.flat[0] = 9


def test_entries_of_another_shape(tmp_path):
    file = ArrayFile(tmp_path / "z.npy", np.dtype(np.int32), (2,))
    with pytest.raises(ValueError, match=r"entries have shape \(3,\), not \(2,\)"):
        file.append(np.zeros((1, 3)))
    file.abandon()
