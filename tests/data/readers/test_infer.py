"""Formats told by names and by first lines."""

import gzip
import zipfile
from pathlib import Path

import pytest

from weft.core.errors import DataError
from weft.data.readers.infer import infer_format

LABELLED, PAIR, TAGS = ("text", "label"), ("text", "text"), ("words", "labels")


def infer(path, kinds, max_line=1000):
    return infer_format((path,), kinds, max_line)


@pytest.mark.parametrize(
    ("name", "kinds", "form"),
    [
        ("a.tsv", PAIR, "tsv"),
        ("a.csv.xz", PAIR, "csv"),
        ("a.csv", ("values",), "series"),
        ("a.jsonl.gz", PAIR, "jsonl"),
        ("a.conllu", TAGS, "conllu"),
        ("a.bio", TAGS, "conll"),
        ("a.FASTA", LABELLED, "fasta"),
        ("a.npz", ("values",), "npz"),
        ("a.mat", ("frames",), "pianoroll"),
    ],
)
def test_names_tell(name, kinds, form):
    assert infer(Path(name), kinds) == form


def test_two_files_are_parallel():
    assert infer_format((Path("a.tsv"), Path("b.tsv")), PAIR, 1000) == "parallel"


@pytest.mark.parametrize(
    ("content", "kinds", "form"),
    [
        ("a b\nc d\n", ("text",), "text"),
        ("1 a b\n0 c d\n", LABELLED, "labelled_text"),
        ("__label__x a b\n__label__y c\n", LABELLED, "labelled_text"),
        ("a\tb\nc\td\n", PAIR, "tsv"),
        ('{"a": 1}\n{"a": 2}\n', PAIR, "jsonl"),
        (">p x\nMK\n", LABELLED, "fasta"),
        ("a X\nb Y\n\nc Z\n", TAGS, "conll"),
        ("1\ta\t_\tX\t_\t_\t_\t_\t_\t_\n\n", TAGS, "conllu"),
        ("1 2\n3 4\n", ("values",), "series"),
    ],
)
def test_first_lines_tell(tmp_path, content, kinds, form):
    path = tmp_path / "train"
    path.write_text(content)
    assert infer(path, kinds) == form
    (tmp_path / "train.gz").write_bytes(gzip.compress(content.encode()))
    assert infer(tmp_path / "train.gz", kinds) == form


def test_folders_and_archives_tell(tmp_path):
    assert infer(tmp_path, LABELLED) == "label_files"
    for names, form in ((["A.txt", "B.txt"], "label_files"), (["a.csv"], "csv")):
        path = tmp_path / "a.zip"
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, "x\n")
        assert infer(path, LABELLED) == form


def test_what_is_not_plain_is_asked_for(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one line\nand another\n")
    with pytest.raises(
        DataError, match=r"where text and text stand is not plain\. Name the layout: data\.format=tsv"
    ):
        infer(path, PAIR)
