"""Piano rolls of .mat files."""

import numpy as np
import pytest
import scipy.io

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource


def write(tmp_path, keys=88, **parts):
    def cell(sizes):
        pieces = np.empty((1, len(sizes)), dtype=object)
        for i, size in enumerate(sizes):
            pieces[0, i] = np.eye(size, keys, k=i, dtype=np.uint8)
        return pieces

    path = tmp_path / "a.mat"
    scipy.io.savemat(path, {f"{part}data": cell(sizes) for part, sizes in parts.items()})
    return path


def test_a_part_is_named_by_suffix_or_option(tmp_path):
    path = write(tmp_path, train=[3, 4], valid=[5], test=[6])
    pieces = [row.values[0] for row in RowSource(f"{path}#train", kinds=("frames",))]
    assert [(piece.shape, piece.dtype) for piece in pieces] == [((3, 88), np.uint8), ((4, 88), np.uint8)]
    assert pieces[1][2].nonzero()[0].tolist() == [3]
    assert len(list(RowSource(path, ReadOptions(part="test"), ("frames",)))) == 1
    assert "part valid: 1 pieces of 88 keys" in RowSource(f"{path}#valid", kinds=("frames",)).description


def test_no_part_is_refused(tmp_path):
    path = write(tmp_path, train=[3])
    with pytest.raises(DataError, match=r"holds three parts\. Name one: .*a\.mat#train, #valid or #test"):
        list(RowSource(path, kinds=("frames",)))
    with pytest.raises(DataError, match="there is no part `dev`"):
        RowSource(f"{path}#dev", kinds=("frames",))
    with pytest.raises(DataError, match=r"has no `testdata`\."):
        list(RowSource(f"{path}#test", kinds=("frames",)))


def test_other_widths_are_refused(tmp_path):
    path = write(tmp_path, keys=87, train=[3])
    with pytest.raises(
        DataError, match=r"line 1: A piano roll has 88 keys a frame, but this has shape \(3, 87\)"
    ):
        list(RowSource(f"{path}#train", kinds=("frames",)))


@pytest.mark.parametrize("content", [b"", b"no such file" * 20], ids=["empty", "other"])
def test_a_damaged_file_is_refused(tmp_path, content):
    path = tmp_path / "a.mat"
    path.write_bytes(content)
    with pytest.raises(DataError, match=r"a\.mat is not a readable \.mat file"):
        list(RowSource(f"{path}#train", kinds=("frames",)))
