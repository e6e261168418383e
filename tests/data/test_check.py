"""The check of a data set: what it counts, what it finds, how it reads."""

import json

import numpy as np
import pytest

from weft.data.check import Lengths, check, render
from weft.data.rows import ReadOptions
from weft.data.source import RowSource

LABELLED = ("text", "label")


def memory(rows, kinds=LABELLED):
    return RowSource.from_memory(rows, kinds)


@pytest.fixture
def report():
    train = [("a b c", "x"), ("a b", "y"), ("a b", "x"), ("d", "x"), ("", "y")]
    test = [("a e", "x"), ("a b", "z"), ("d", "x"), ("f g h i", "x")]
    return check({"train": memory(train), "test": memory(test)}, max_length=2)


def test_rows_duplicates_and_conflicts_are_counted(report):
    train = report.sources["train"]
    assert (train.rows, train.duplicates, train.conflicts) == (5, 1, 1)
    assert (train.dropped, train.cut) == (1, 1)


def test_what_leaks_is_counted(report):
    test = report.sources["test"]
    assert (test.rows, test.overlap, test.cut, test.dropped) == (4, 2, 1, 0)
    assert report.sources["train"].overlap == 0


def test_what_train_does_not_know_is_counted(report):
    test = report.sources["test"]
    assert test.unknown["1 words"] == pytest.approx(5 / 9)  # e f g h i of nine words
    assert test.unknown["2 labels"] == pytest.approx(1 / 4)
    assert test.unseen == {"2 labels": ["z"]}


def test_vocabularies_and_lengths_are_counted(report):
    field = report.sources["train"].fields[0]
    assert set(field.vocabulary["words"]) == set("abcd")
    assert field.lengths["words"].summary() == {"mean": 1.6, "min": 0, "median": 2, "p95": 3, "max": 3}
    assert field.lengths["words"].histogram() == [(0, 0, 1), (1, 1, 1), (2, 2, 2), (3, 4, 1)]


def test_a_histogram_doubles():
    lengths = Lengths()
    lengths.counts.update([4, 5, 8, 9, 16, 17])
    assert lengths.histogram() == [(3, 4, 1), (5, 8, 2), (9, 16, 2), (17, 32, 1)]


def test_every_bad_line_is_named_by_number(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_bytes(b"a\tx\n\xff\tx\nb\nc\t\nd\ty\ne\0\tx\n\n")
    report = check({"train": RowSource(path, kinds=LABELLED)})
    assert [fault.line for fault in report.faults] == [2, 3, 4, 6]
    assert report.sources["train"].rows == 2
    text = render(report)
    assert "a.tsv, line 2: is not UTF-8: byte 0xff at offset 4" in text
    assert "1 blank lines left out" in text
    assert text.endswith("4 faults. Mend them.")


def test_many_bad_lines_are_all_numbered(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\tx\n" + "b\n" * 50)
    assert "and lines 22, 23," in render(check({"train": RowSource(path, kinds=LABELLED)}))


def test_a_source_that_cannot_be_read_is_said(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\n")
    report = check({"train": RowSource(path, kinds=LABELLED), "test": memory([("a", "x")])})
    assert "has 1 column, but column 2 is wanted" in render(report)
    assert report.sources["test"].rows == 1


def test_a_broken_only_line_is_named_once(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("a\0\tx\n")
    assert [fault.line for fault in check({"train": RowSource(path, kinds=LABELLED)}).faults] == [1]


@pytest.mark.parametrize("content", ["", " \n\n"])
def test_a_file_without_content_has_one_fault(tmp_path, content):
    path = tmp_path / "a.tsv"
    path.write_text(content)
    report = check({"train": RowSource(path, kinds=LABELLED)})
    assert [(fault.path, fault.line) for fault in report.faults] == [(str(path), 0)]
    assert render(report).endswith("1 fault. Mend it.")


def test_numbers_are_summarised():
    rows = [(np.array([[1.0], [3.0]]), 2.0), (np.array([[5.0]]), -1.0)]
    plain = check({"train": memory(rows, ("values", "value"))}).plain()["sources"]["train"]["fields"]
    assert plain[0]["numbers"] == {"count": 3, "missing": 0, "mean": 3.0, "min": 1.0, "max": 5.0}
    assert plain[0]["lengths"]["steps"]["max"] == 2
    assert plain[1]["numbers"]["min"] == -1.0


def test_missing_numbers_are_counted():
    source = RowSource.from_memory((["a", "b"], ["1", "NA"]), ("text", "value"), ReadOptions(missing=("NA",)))
    plain = check({"train": source}).plain()["sources"]["train"]["fields"][1]
    assert plain["numbers"] == {"count": 1, "missing": 1, "mean": 1.0, "min": 1.0, "max": 1.0}


def test_words_and_labels_are_counted():
    rows = [(["New York", "is"], ["N", "V"]), (["big"], ["A"])]
    plain = check({"train": memory(rows, ("words", "labels"))}).plain()["sources"]["train"]["fields"]
    assert plain[0]["vocabulary"] == {"words": 3}
    assert plain[1]["labels"] == {"N": 1, "V": 1, "A": 1}


def test_a_report_is_plain_data_and_readable(report):
    assert json.loads(json.dumps(report.plain()))["sources"]["test"]["overlap"] == 2
    text = render(report)
    assert "also in train  2 inputs" in text
    assert "55.56% not in train" in text
    assert "not in train (scored wrong): z" in text
    assert "repeated       1 inputs, 1 with another target" in text
    assert text.endswith("No fault.")


def test_a_label_of_several_is_counted_each():
    rows = [("a", ["x", "y"]), ("b", ["y"])]
    plain = check({"train": memory(rows)}).plain()["sources"]["train"]["fields"][1]
    assert plain["labels"] == {"y": 2, "x": 1}
