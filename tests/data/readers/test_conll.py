"""Columns of words: sentences, comments, skipped ids, ragged lines."""

import pytest

from weft.core.errors import ConfigError, DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource, collect

KINDS = ("words", "labels")


def source(tmp_path, content, name="a.conll", **options):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return RowSource(path, ReadOptions(**options), KINDS)


def ud(*tokens):
    """Return CoNLL-U lines of (id, form, upos)."""
    return "".join(f"{i}\t{form}\t_\t{tag}\tX{tag}\t_\t_\t_\t_\t_\n" for i, form, tag in tokens)


def test_the_first_and_the_last_column_are_read(tmp_path):
    rows = source(tmp_path, "He PRP B-NP\nran VBD B-VP\n\n\nNo UH O\n")
    assert [(row.number, *row.values) for row in rows] == [
        (1, ["He", "ran"], ["B-NP", "B-VP"]),
        (5, ["No"], ["O"]),
    ]
    assert [row.values[1] for row in source(tmp_path, "He PRP B-NP\n", columns=("1", "2"))] == [["PRP"]]


def test_comments_and_document_lines_are_no_words_but_a_hash_is(tmp_path):
    content = "-DOCSTART- -X- O\n\n# id 7 of the file\nHe PRP B-NP\n# # B-NP\n\n# # O\n"
    rows = source(tmp_path, content)
    assert [row.values[0] for row in rows] == [["He", "#"], ["#"]]


def test_ids_of_ranges_and_empty_words_are_skipped(tmp_path):
    content = "# text = del mar\n" + ud(
        ("1-2", "del", "_"), (1, "de", "ADP"), (2, "el", "DET"), ("2.1", "x", "Y")
    )
    rows = source(tmp_path, content + "\n" + ud((1, "new york", "PROPN")), "a.conllu")
    assert [row.values for row in rows] == [(["de", "el"], ["ADP", "DET"]), (["new york"], ["PROPN"])]
    assert [row.number for row in rows] == [3, 7]


def test_columns_have_names_in_conllu(tmp_path):
    rows = source(tmp_path, ud((1, "a", "N")), "a.conllu", columns=("form", "xpos"))
    assert [row.values for row in rows] == [(["a"], ["XN"])]
    with pytest.raises(ConfigError, match=r"`data\.columns` cannot be `pos` here\. Give one of id, form"):
        list(source(tmp_path, ud((1, "a", "N")), "a.conllu", columns=("form", "pos")))


BROKEN = {
    "ragged": ("a.conll", "He PRP O\nran O\n", {}, r"line 2: has 2 columns, but line 1 has 3"),
    "one column": ("a.conll", "He\nran\n", {}, r"line 1: has 1 column, but column 2 is wanted"),
    "no such column": (
        "a.conll",
        "He O\n",
        {"columns": ("1", "4")},
        r"has 2 columns, but column 4 is wanted",
    ),
    "ragged conllu": ("a.conllu", "1\tHe\tX\n", {}, r"line 1: has 3 columns, but CoNLL-U has 10"),
    "no id": ("a.conllu", "He\tX\n", {}, r"line 1: begins with 'He', not a word's number"),
    "empty": ("a.conll", "\n\n", {}, "holds only whitespace"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path, what):
    name, content, options, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        list(source(tmp_path, content, name, **options))


def test_every_broken_line_is_found(tmp_path):
    good, faults = collect(source(tmp_path, "a X\nb\nc Y\n\nd\ne Z\n"))
    assert [row.values[0] for row in good] == [["a", "c"], ["e"]]
    assert [fault.line for fault in faults.faults] == [2, 5]
