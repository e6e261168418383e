"""FASTA: sequences over lines, labels and values from the header."""

import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource, collect


def source(tmp_path, content, kinds=("text", "label"), **options):
    path = tmp_path / "a.fasta"
    path.write_text(content, encoding="utf-8", newline="")
    return RowSource(path, ReadOptions(**options), kinds)


def test_sequences_span_lines_and_the_last_word_is_the_label(tmp_path):
    rows = source(tmp_path, ">p1 enzyme\nMK V\nLL\n\n>p2|x|other\nAA\n")
    assert [(row.number, *row.values) for row in rows] == [(1, "MKVLL", "enzyme"), (5, "AA", "other")]


@pytest.mark.parametrize("columns", [("tm",), ("sequence", "tm"), ("2",)])
def test_a_field_of_the_header_can_be_named(tmp_path, columns):
    rows = source(tmp_path, ">p1 tm=51.5 ph=7\nMK\n", ("text", "value"), columns=columns)
    if columns == ("2",):
        with pytest.raises(DataError, match=r"'tm=51.5' is not a number"):
            list(rows)
    else:
        assert [row.values for row in rows] == [("MK", 51.5)]


def test_sequences_alone_need_no_label(tmp_path):
    assert [row.values for row in source(tmp_path, ">p1\nMK\n>p2\n", ("text",), format="fasta")] == [
        ("MK",),
        ("",),
    ]


BROKEN = {
    "no label": (">p1 x\nMK\n>p2\nMV\n", {}, r"line 3: has a header without a label after the name"),
    "no field": (">p1 x\nMK\n", {"columns": ("tm",)}, r"line 1: has a header without a field `tm`"),
    "no header": ("MK\n>p1 x\nMV\n", {}, r"line 1: stands before the first `>` line"),
    "too many columns": (">p1 x\nMK\n", {"columns": ("a", "b", "c")}, "FASTA has one column to name"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path, what):
    content, options, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        list(source(tmp_path, content, **options))


def test_every_broken_record_is_found(tmp_path):
    good, faults = collect(source(tmp_path, "MK\n>p1\nMV\n>p2 y\nMM\n"))
    assert [row.values for row in good] == [("MM", "y")]
    assert [fault.line for fault in faults.faults] == [1, 2]
