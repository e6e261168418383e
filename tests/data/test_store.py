import errno
import os
import tracemalloc

import numpy as np
import pytest

from weft.core.errors import ArtefactError, DataError, ResourceError
from weft.data import arrays
from weft.data.fields import LabelField, LabelsField, Limits, TextField, WordsField
from weft.data.rows import ReadOptions, Row
from weft.data.source import RowSource
from weft.data.split import SplitRows
from weft.data.store import file_identity, open_dataset, prepare, prepare_cached, row_identity
from weft.data.tokenizers import ByteTokenizer, CharTokenizer
from weft.data.vocabulary import Vocabulary

FIELDS = {"text": TextField(CharTokenizer.fit(["abc"])), "label": LabelField(["n", "p"])}
ROWS = [Row(1, ("ab", "p")), Row(2, ("", "n")), Row(4, ("abxc", "q"))]


def texts(dataset):
    return [dataset.item(i)["text"].tolist() for i in range(len(dataset))]


@pytest.mark.parametrize("named", [True, False])
def test_rows_become_columns(tmp_path, named):
    dataset = prepare(ROWS, FIELDS, tmp_path / "x" if named else None)
    assert texts(dataset) == [[4, 5], [4, 5, 1, 6]]
    assert dataset.columns["label"].flat.tolist() == [1, -1]
    assert dataset.ragged() == ["text"]
    assert dataset.numbers.tolist() == [1, 3]
    counts = dataset.counts
    assert (counts.kept, counts.empty, counts.too_long, counts.cut) == (2, 1, 0, 0)
    assert counts.unknown == {"text": 1, "label": 1}
    assert [p.name for p in tmp_path.iterdir()] == (["x"] if named else [])


def test_too_long_is_cut_to_its_first_elements():
    dataset = prepare(ROWS, FIELDS, limits=Limits(max_length=3))
    assert texts(dataset) == [[4, 5], [4, 5, 1]]
    assert (dataset.counts.kept, dataset.counts.cut) == (2, 1)


def test_too_long_is_dropped_if_told():
    dataset = prepare(ROWS, FIELDS, limits=Limits(max_length=3, over_length="drop"))
    assert texts(dataset) == [[4, 5]]
    assert (dataset.counts.kept, dataset.counts.too_long) == (1, 1)


def test_empty_is_kept_if_told():
    assert texts(prepare(ROWS, FIELDS, limits=Limits(empty="keep"))) == [[4, 5], [], [4, 5, 1, 6]]


def test_nothing_left():
    with pytest.raises(DataError, match="No item is left: 1 are empty, 1 too long"):
        prepare(ROWS[1:], FIELDS, limits=Limits(max_length=3, over_length="drop"))


def test_a_view_copies_nothing():
    dataset = prepare(ROWS, FIELDS, limits=Limits(empty="keep"))
    view = dataset.select(np.array([2, 0]))
    assert len(view) == 2
    assert texts(view) == [[4, 5, 1, 6], [4, 5]]
    assert view.lengths("text").tolist() == [4, 2]
    assert texts(view.select(np.array([1]))) == [[4, 5]]
    assert view.columns is dataset.columns


def test_an_error_names_line_and_field_and_leaves_nothing(tmp_path):
    rows = [*ROWS, Row(7, ("a", 3))]
    with pytest.raises(DataError, match=r"^Line 7, field `label`: A label must be text, but is int: 3.$"):
        prepare(rows, FIELDS, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_labels_must_be_one_a_word():
    fields = {"words": WordsField(Vocabulary(["a"])), "tags": LabelsField(["N"])}
    with pytest.raises(
        DataError, match=r"Line 3: `tags` needs one label an element of `words` \(2\), but has 1"
    ):
        prepare([Row(3, (["a", "a"], ["N"]))], fields)


def test_a_full_disk(tmp_path, monkeypatch):
    def refuse(self, piece):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(arrays.ArrayFile, "append", refuse)
    with pytest.raises(ResourceError, match=r"The disk is full.*bytes free. Set WEFT_CACHE"):
        prepare(ROWS, FIELDS, tmp_path / "x")
    assert list(tmp_path.iterdir()) == []


def test_memory_does_not_grow_with_the_text():
    fields = {"text": TextField(ByteTokenizer())}

    def peak(count):
        tracemalloc.start()
        prepare((Row(i, ("some text " * 40,)) for i in range(count)), fields)
        size = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return size

    peak(10)  # what is imported or built once
    assert peak(600) < peak(100) + 100_000  # 600 items are 960 kB as arrays, and more as objects


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{'ab' * (i % 5 + 1)}\tp\n" for i in range(40)))
    return RowSource(str(path), ReadOptions(header="false"), ("text", "label"))


@pytest.fixture
def cache(tmp_path, monkeypatch):
    folder = tmp_path / "cache"
    monkeypatch.setenv("WEFT_CACHE", str(folder))
    return folder


def test_the_second_time_nothing_is_read(pairs, cache, monkeypatch):
    first = prepare_cached(pairs, FIELDS, Limits())
    monkeypatch.delattr(type(pairs), "__iter__")
    second = prepare_cached(pairs, FIELDS, Limits())
    assert texts(first) == texts(second)
    assert first.counts == second.counts
    assert len(list(cache.iterdir())) == 1


def test_anything_different_is_prepared_anew(pairs, cache):
    other = {**FIELDS, "label": LabelField(["p"])}
    prepare_cached(pairs, FIELDS, Limits())
    prepare_cached(pairs, FIELDS, Limits(max_length=2))
    prepare_cached(pairs, other, Limits())
    prepare_cached(SplitRows(pairs, "train", (0.5, 0.5, 0)), FIELDS, Limits())
    prepare_cached(SplitRows(pairs, "valid", (0.5, 0.5, 0)), FIELDS, Limits())
    path = pairs.paths[0]
    os.utime(path, ns=(1, 1))
    prepare_cached(pairs, FIELDS, Limits())
    assert len(list(cache.iterdir())) == 6


def test_damage_is_mended(pairs, cache):
    first = texts(prepare_cached(pairs, FIELDS, Limits()))
    (folder,) = cache.iterdir()
    for name in ("dataset.json", "column0.npy", "column0.offsets.npy", "numbers.npy"):
        (folder / name).write_bytes(b"x")
        assert texts(prepare_cached(pairs, FIELDS, Limits())) == first


def test_a_version_from_elsewhere(pairs, cache):
    prepare_cached(pairs, FIELDS, Limits())
    (folder,) = cache.iterdir()
    about = folder / "dataset.json"
    about.write_text(about.read_text().replace('"format": 2', '"format": 9'))
    with pytest.raises(ArtefactError, match=r"damaged or of another version. Delete the folder"):
        open_dataset(folder)


def test_memory_is_not_cached(cache):
    source = RowSource.from_memory([("ab", "p")], ("text", "label"))
    assert row_identity(source) is None
    assert texts(prepare_cached(source, FIELDS, Limits())) == [[4, 5]]
    assert not cache.exists()


def test_identity_of_folders_and_members(tmp_path):
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.txt").write_text("1")
    (tmp_path / "b.zip").write_text("22")
    assert [entry[1] for entry in file_identity(tmp_path / "a")[1:]] == [1]
    assert [entry[1] for entry in file_identity(tmp_path / "b.zip" / "member")[1:]] == [2]
