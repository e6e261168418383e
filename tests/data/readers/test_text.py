"""Plain lines, lines that begin with a label, and files named after a label."""

import gzip
import zipfile

import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource


def write(tmp_path, content, name="a.txt"):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return path


def test_lines_are_kept_whole_and_empty_ones_too(tmp_path):
    source = RowSource(write(tmp_path, " a b \n\nc\n"))
    assert [(row.number, *row.values) for row in source] == [(1, " a b "), (2, ""), (3, "c")]
    assert source.description.endswith("text; one text a line")


def test_plain_text_gives_one_column(tmp_path):
    path = write(tmp_path, "a\n")
    with pytest.raises(DataError, match="plain text gives one column, but text, text are wanted"):
        list(RowSource(path, ReadOptions(format="text"), ("text", "text")))


@pytest.mark.parametrize("kinds", [("text", "label"), ("label", "text")])
def test_the_first_word_is_the_label(tmp_path, kinds):
    source = RowSource(
        write(tmp_path, "1 a good one\n0\tbad\n\n1\n"), ReadOptions(format="labelled_text"), kinds
    )
    found = [dict(zip(kinds, row.values, strict=True)) for row in source]
    assert [(row["label"], row["text"]) for row in found] == [("1", "a good one"), ("0", "bad"), ("1", "")]
    assert source.counts.blank == 1


def test_files_are_labels_in_a_folder(tmp_path):
    (tmp_path / "in").mkdir()
    write(tmp_path / "in", "Wei \n\nLi\n", "Chinese.txt")
    (tmp_path / "in" / "Irish.txt.gz").write_bytes(gzip.compress("Ó Néill\n".encode()))
    write(tmp_path / "in", "x\n", ".hidden.txt")
    write(tmp_path, "x\n", "README.md")
    source = RowSource(tmp_path, kinds=("text", "label"))
    assert [row.values for row in source] == [("Wei", "Chinese"), ("Li", "Chinese"), ("Ó Néill", "Irish")]
    assert source.counts.blank == 1
    assert "2 files, each named after its label (Chinese to Irish)" in source.description


def test_files_are_labels_in_an_archive(tmp_path):
    path = tmp_path / "names.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("names/B.txt", "b\n")
        archive.writestr("names/A.txt", "a\n")
        archive.writestr("__MACOSX/names/A.txt", "junk\n")
    found = [row.values for row in RowSource(path, kinds=("text", "label"))]
    assert found == [("a", "A"), ("b", "B")]


def test_a_broken_line_names_the_inner_file(tmp_path):
    path = tmp_path / "names.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("A.txt", b"a\n\xff\n")
        archive.writestr("B.txt", b"b\n")
    with pytest.raises(DataError, match=r"names\.zip/A\.txt, line 2: is not UTF-8"):
        list(RowSource(path, kinds=("text", "label")))


def test_a_folder_without_labels_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"holds no NAME\.txt\. Put each label's items in a file named after it"
    ):
        list(RowSource(tmp_path, kinds=("text", "label")))


def test_two_files_of_one_label_are_refused(tmp_path):
    write(tmp_path, "a\n", "A.txt")
    (tmp_path / "deep").mkdir()
    write(tmp_path / "deep", "a\n", "A.txt")
    with pytest.raises(DataError, match="both stand for label `A`"):
        list(RowSource(tmp_path, kinds=("text", "label")))
