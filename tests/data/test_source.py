"""Sources: read anew, from files or memory; and the published sets have their published sizes."""

import unicodedata

import numpy as np
import pandas
import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions, Row
from weft.data.source import RowSource

PAIR, LABELLED = ("text", "text"), ("text", "label")


def test_a_source_reads_anew_and_counts_anew(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"\xef\xbb\xbfa\tb\r\n")
    source = RowSource(path, kinds=PAIR)
    for _ in range(2):
        assert list(source) == [Row(1, ("a", "b"))]
        assert (source.counts.bom, source.counts.carriage_returns) == (1, 1)
    assert source.options.format == "tsv"


def test_files_are_found_by_name(tmp_path, monkeypatch):
    (tmp_path / "a.tsv").write_text("a\tb\n")
    monkeypatch.setenv("WEFT_DATA", str(tmp_path))
    assert RowSource("a.tsv", kinds=PAIR).paths == (tmp_path / "a.tsv",)


def test_unique_keeps_the_first_of_each_input():
    data = [("a", "1"), ("b", "2"), ("a", "3"), ("b", "2")]
    source = RowSource.from_memory(data, LABELLED, ReadOptions(unique=True))
    assert [row.values for row in source] == [("a", "1"), ("b", "2")]
    assert source.counts.duplicates == 2


def test_a_description_says_why_a_source_cannot_be_read(tmp_path):
    (tmp_path / "a.tsv").write_text("a\n")
    assert "has 1 column, but column 2 is wanted" in RowSource(tmp_path / "a.tsv", kinds=PAIR).description


FRAME = pandas.DataFrame({"text": ["a", "b"], "n": [1, 2], "label": ["x", "y"]})
MEMORY = {
    "rows": ([("a", "x"), ("b", "y")], ()),
    "lists": ([["a", "x"], ["b", "y"]], ()),
    "columns": ((["a", "b"], ["x", "y"]), ()),
    "a mapping": ({"t": ["a", "b"], "l": np.array(["x", "y"])}, ()),
    "a frame": (FRAME, ("text", "label")),
    "series": ((FRAME["text"], FRAME["label"]), ()),
}


@pytest.mark.parametrize("what", MEMORY)
def test_memory_of_many_shapes(what):
    data, columns = MEMORY[what]
    source = RowSource.from_memory(data, LABELLED, ReadOptions(columns=columns))
    assert list(source) == [Row(1, ("a", "x")), Row(2, ("b", "y"))]
    assert source.description == "memory: memory; 2 rows of text and label"


def test_arrays_in_memory():
    source = RowSource.from_memory((np.ones((3, 5, 2)), np.array([1.0, 2.0, 3.0])), ("values", "value"))
    rows = list(source)
    assert [row.values[0].shape for row in rows] == [(5, 2)] * 3
    assert [row.values[1] for row in rows] == [1.0, 2.0, 3.0]
    assert [row.values[1] for row in RowSource.from_memory((["a"], np.array([3])), LABELLED)] == ["3"]


STEPS = np.arange(8.0).reshape(4, 2)
TABLE = pandas.DataFrame(
    {
        "day": pandas.date_range("2026-01-01", periods=4),
        "a": STEPS[:, 0],
        "b": STEPS[:, 1],
        "of": list("xyxy"),
    }
)


@pytest.mark.parametrize(
    ("data", "options", "expected"),
    [
        (STEPS, {}, [STEPS]),
        (STEPS[:, 0], {}, [STEPS[:, :1]]),
        (STEPS[:, 0].tolist(), {}, [STEPS[:, :1]]),
        (TABLE, {}, [STEPS]),
        (TABLE, {"columns": ("b",)}, [STEPS[:, 1:]]),
        (TABLE, {"series": "of"}, [STEPS[::2], STEPS[1::2]]),
        ([STEPS, STEPS[:3]], {}, [STEPS, STEPS[:3]]),
        (np.stack([STEPS, STEPS]), {}, [STEPS, STEPS]),
    ],
)
def test_series_in_memory(data, options, expected):
    rows = [row.values[0] for row in RowSource.from_memory(data, ("values",), ReadOptions(**options))]
    assert [row.tolist() for row in rows] == [series.tolist() for series in expected]


def test_a_table_without_numbers_is_no_series():
    with pytest.raises(DataError, match=r"no column of numbers\. Name some with data\.columns="):
        RowSource.from_memory(FRAME[["text"]], ("values",))


def test_one_kind_is_a_plain_list():
    assert [row.values for row in RowSource.from_memory(["a b", "c"], ("text",))] == [("a b",), ("c",)]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ([], r"The data is empty\. Give at least one row"),
        ([("a", "x"), ("b",)], r"Row 2 must have 2 values \(text, label\), but is \('b',\)"),
        ((["a", "b"], ["x"]), "Columns must be equally long, but have 2, 1 rows"),
        ({"t": ["a"]}, r"has no 2 columns \(text, label\)\. It has: t"),
        (["ab", "cd"], "Row 1 must have 2 values"),
        ([("a", 1.5)], "memory, line 1: A label is wanted"),
    ],
)
def test_wrong_data_in_memory_is_refused(data, message):
    with pytest.raises(DataError, match=message):
        list(RowSource.from_memory(data, LABELLED))


def test_a_wrong_column_of_a_frame_is_named():
    with pytest.raises(DataError, match=r"has no column `lable`\. It has: text, n, label"):
        RowSource.from_memory(FRAME, LABELLED, ReadOptions(columns=("text", "lable")))


MULTI30K = ("val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")
SST = {"fine": (8544, 1101, 2210), "binary": (6920, 872, 1821)}
LARGE = [
    ("ud_english_ewt/en_ewt-ud-train.conllu.xz", (), ("words", "labels"), 12544, "conllu", 204577),
    ("multi30k/train.en.gz multi30k/train.de.gz", (), PAIR, 29000, "parallel", None),
    ("samsum/train.csv.xz", ("dialogue", "summary"), PAIR, 14731, "csv", None),
]
PUBLISHED = [  # files, columns, kinds, rows, format, elements of the first field
    *(pytest.param(*case, marks=pytest.mark.long) for case in LARGE),
    ("ud_english_ewt/en_ewt-ud-dev.conllu.xz", (), ("words", "labels"), 2001, "conllu", 25147),
    ("ud_english_ewt/en_ewt-ud-test.conllu.xz", (), ("words", "labels"), 2077, "conllu", 25094),
    ("tiny_shakespeare/input.txt.xz", (), ("text",), 40000, "text", 1115394 - 40000),
    ("polyphonic/JSB_Chorales.mat#train", (), ("frames",), 229, "pianoroll", None),
    ("polyphonic/JSB_Chorales.mat#valid", (), ("frames",), 76, "pianoroll", None),
    ("polyphonic/JSB_Chorales.mat#test", (), ("frames",), 77, "pianoroll", None),
    ("protein_tm50/Tm50Train.csv.gz", ("sequence", "tm"), ("text", "value"), 6240, "csv", None),
    ("protein_tm50/Tm50Test.csv.gz", ("sequence", "tm"), ("text", "value"), 1550, "csv", None),
    ("samsum/test.csv.xz", ("dialogue", "summary"), PAIR, 819, "csv", None),
    ("scitldr_a/test.jsonl.xz", ("source", "target"), PAIR, 618, "jsonl", None),
    ("protein_ss/cb513.tsv.gz", ("seq", "dssp"), PAIR, 513, "tsv", 84119),
    ("lambada/lambada_test.jsonl.xz", (), ("text",), 5153, "jsonl", None),
    *(
        (f"sst/stsa.{kind}.{part}.gz", (), LABELLED, count, "labelled_text", None)
        for kind, counts in SST.items()
        for part, count in zip(("train", "dev", "test"), counts, strict=True)
    ),
    *(
        (f"multi30k/{part}.en.gz multi30k/{part}.de.gz", (), PAIR, count, "parallel", None)
        for part, count in zip(MULTI30K, (1014, 1000, 1000, 461, 1071), strict=True)
    ),
]


@pytest.mark.parametrize(
    ("files", "columns", "kinds", "count", "form", "elements"), PUBLISHED, ids=lambda v: str(v)[:45]
)
def test_published_sets_have_their_sizes(data_file, files, columns, kinds, count, form, elements):
    names = []
    for name in files.split():
        file, mark, part = name.partition("#")
        names.append(f"{data_file(file)}{mark}{part}")
    source = RowSource(names, ReadOptions(columns=columns), kinds)
    rows = list(source)
    assert (len(rows), source.options.format) == (count, form)
    assert elements is None or sum(len(row.values[0]) for row in rows) == elements


def test_the_names_are_in_normal_form_c(data_file):
    source = RowSource(data_file("names_18lang/names.zip"), ReadOptions(unique=True), LABELLED)
    names = [row.values for row in source]
    assert source.options.format == "label_files"
    assert len(names) + source.counts.duplicates == 20050
    assert len({label for _, label in names}) == 18
    assert all(unicodedata.is_normalized("NFC", name) and name == name.strip() for name, _ in names)


def test_the_protein_table_begins_with_a_mark(data_file):
    source = RowSource(
        data_file("protein_tm50/Tm50Test.csv.gz"), ReadOptions(columns=("sequence", "tm")), ("text", "value")
    )
    rows = list(source)
    assert source.counts.bom == 1
    assert max(len(row.values[0]) for row in rows) <= 1028
    assert all(row.values[1] >= 50 for row in rows)


def test_the_chorales_have_known_first_notes(data_file):
    path = data_file("polyphonic/JSB_Chorales.mat")
    first = next(iter(RowSource(f"{path}#train", kinds=("frames",)))).values[0]
    assert first.shape == (129, 88)
    assert 3 <= first[0].sum() <= 4  # a chord of the four voices, two of them perhaps on one key


def test_the_series_has_its_first_step(data_file):
    source = RowSource(data_file("ett/ETTh1.csv.xz"), kinds=("values",))
    ((values,),) = [row.values for row in source]
    assert source.options.format == "series"
    assert values.shape == (17420, 7)
    assert values[0].tolist() == pytest.approx([5.827, 2.009, 1.599, 0.462, 4.203, 1.34, 30.531], abs=1e-3)
