"""Tables: header, columns, quotes, and every broken line."""

import pytest

from weft.core.errors import ConfigError, DataError
from weft.data.lines import FaultList
from weft.data.rows import ReadOptions
from weft.data.source import RowSource, collect


@pytest.fixture
def table(tmp_path):
    def make(content, kinds=("text", "text"), name="a.tsv", **options):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8", newline="")
        return RowSource(path, ReadOptions(**options), kinds)

    return make


def rows(source):
    return [(row.number, *row.values) for row in source]


def test_the_first_columns_are_read(table):
    source = table("a\tb\tc\nd\te\tf\n")
    assert rows(source) == [(1, "a", "b"), (2, "d", "e")]
    assert source.description.endswith("tsv; no header; 3 columns; text from column 1, text from column 2")


def test_tabs_make_columns_and_quotes_are_text_in_tsv(table):
    assert rows(table('"a\tb, "c"\n')) == [(1, '"a', 'b, "c"')]


def test_columns_by_number(table):
    assert rows(table("a\tb\tc\n", columns=("3", "1"))) == [(1, "c", "a")]


def test_columns_by_name_need_a_header(table):
    source = table("p\tq\tr\n1\t2\t3\n", columns=("r", "p"))
    assert rows(source) == [(2, "3", "1")]
    assert "header p, q, r; 3 columns; text from column 3 (r), text from column 1 (p)" in source.description


def test_a_number_may_be_the_name_of_a_column(table):
    assert rows(table("2\tx\na\tb\n", columns=("2", "1"), header="true")) == [(2, "a", "a")]


@pytest.mark.parametrize(
    ("content", "kinds", "first"),
    [
        ("source\ttarget\na\tb\n", ("text", "text"), 2),  # words people name columns by
        ("Text\tLabel\na\tb\n", ("text", "label"), 2),
        ("protein\ttm\nMK\t50.5\nMV\t51\n", ("text", "value"), 2),  # a word over numbers
        ("protein\ttm\nMK\t50.5\nMV\tNaN\n", ("text", "value"), 2),  # what is broken is line 3
        ("protein\ttm\nMK\t50.5\nMV\t\n", ("text", "value"), 2),
        ("id\treview\n7\ta\n8\tb\n9\tc\n", ("text", "label"), 2),
        ("seven\treview\n7\ta\n8\tb\n", ("text", "label"), 1),  # two numbers are not enough
        ("label\tlabel\na\tb\n", ("text", "text"), 1),  # no two columns have one name
        ("hello\tworld\na\tb\n", ("text", "text"), 1),
        ("MK\t49\nMV\t51\n", ("text", "value"), 1),
    ],
)
def test_a_header_is_taken_only_where_unmistakable(table, content, kinds, first):
    source = table(content, kinds)
    assert next(iter(source))[0] == first


def test_a_header_can_be_told(table):
    assert rows(table("a\tb\nc\td\n", header="true")) == [(2, "c", "d")]
    assert rows(table("source\ttarget\nc\td\n", header="false"))[0] == (1, "source", "target")


def test_blank_lines_are_left_out_and_counted(table):
    source = table("a\tb\n\nc\td\n\n")
    assert rows(source) == [(1, "a", "b"), (3, "c", "d")]
    assert source.counts.blank == 2


def test_unusual_line_ends_are_content(table):
    assert rows(table("a\u2028b\tc\x85\n")) == [(1, "a\u2028b", "c\x85")]
    assert rows(table("a\u2028b,c\x0b\n", name="a.csv")) == [(1, "a\u2028b", "c\x0b")]


def test_csv_quotes_hold_commas_quotes_and_lines(table):
    content = 'dialogue,summary\r\n"A: hi, you\r\nB: ""yes""",short\r\nplain,x\r\n'
    source = table(content, name="a.csv")
    assert rows(source) == [(2, 'A: hi, you\nB: "yes"', "short"), (4, "plain", "x")]
    assert source.counts.carriage_returns == 4


def test_semicolons_are_found_where_no_comma_stands(table):
    source = table("a;b\nc;d\n", name="a.csv")
    assert rows(source) == [(1, "a", "b"), (2, "c", "d")]
    assert "columns between ';'" in source.description


@pytest.mark.parametrize(
    ("told", "mark"), [("|", "|"), ("tab", "\t"), ("\\t", "\t"), ("space", " "), ("::", "::")]
)
def test_delimiters_can_be_told(table, told, mark):
    assert rows(table(f"a{mark}b\n", name="a.dat", format="tsv", delimiter=told)) == [(1, "a", "b")]


def test_a_missing_number_must_be_declared(table):
    content = "MK\tNA\nMV\t2\n"
    with pytest.raises(DataError, match=r"a\.tsv, line 1: 'NA' is not a number.*data\.missing=NA"):
        rows(table(content, ("text", "value"), header="false"))
    assert rows(table(content, ("text", "value"), missing=("NA",)))[1] == (2, "MV", 2.0)


BROKEN = {
    "ragged": ("a\tb\nc\n", {}, r"a\.tsv, line 2: has 1 column, but line 1 has 2\. Mend the line"),
    "too wide": ("a\tb\nc\td\te\n", {}, r"line 2: has 3 columns, but line 1 has 2"),
    "NaN": (
        "a\tb\nc\tnan\n",
        {"kinds": ("text", "value"), "header": "true"},
        r"line 2: 'nan' is not a finite number",
    ),
    "no number": ("a\t1\nc\tx\n", {"kinds": ("text", "value")}, r"line 2: 'x' is not a number"),
    "empty label": ("a\tx\nc\t\n", {"kinds": ("text", "label")}, r"line 2: The label is empty"),
    "no such name": ("p\tq\na\tb\n", {"columns": ("p", "qq")}, r"has no column `qq`\. Did you mean `q`"),
    "a name but no header": (
        "a\tb\n",
        {"columns": ("p", "q"), "header": "false"},
        r"names `p`, but .* no header",
    ),
    "a name twice": ("p\tp\na\tb\n", {"columns": ("p", "p")}, r"two columns `p`\. Name them by number"),
    "no such number": ("a\tb\n", {"columns": ("1", "3")}, r"has 2 columns, but column 3 is wanted"),
    "one column": (
        "a\nb\n",
        {},
        r"has 1 column, but column 2 is wanted\. Name data\.columns= or data\.delimiter=",
    ),
    "too few named": ("a\tb\n", {"columns": ("1",)}, r"must name 2 columns \(text, text\), but is 1"),
    "no delimiter": ("a\tb\n", {"delimiter": ""}, "must be one character"),
    "empty": ("", {}, r"a\.tsv is empty"),
    "blank": (" \n\n", {}, r"a\.tsv holds only whitespace"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(table, what):
    content, options, message = BROKEN[what]
    with pytest.raises((DataError, ConfigError), match=message) as caught:
        rows(table(content, **options))
    assert "\n" not in str(caught.value)


BROKEN_CSV = {
    "an open quote": ('a,b\nc,"d\ne,f\n', r"a\.csv, line 2: opens a quote that is never closed"),
    "text after a quote": ('a,b\n"c"d,e\n', r"a\.csv, line 2: is not CSV"),
    "NUL": ("a,b\nc\0,d\n", r"a\.csv, line 2: holds a NUL byte"),
    "a lone CR in quotes": ('a,b\n"c\rd",e\n', r"a\.csv, line 2: holds a CR that ends no line"),
}


@pytest.mark.parametrize("what", BROKEN_CSV)
def test_what_is_broken_in_csv_is_refused(table, what):
    content, message = BROKEN_CSV[what]
    with pytest.raises(DataError, match=message):
        rows(table(content, name="a.csv"))


def test_an_open_quote_does_not_swallow_a_huge_file(table):
    content = 'a,b\n"c,d\n' + f"{'x' * 500},y\n" * 1000
    with pytest.raises(DataError, match="line 2: opens a quote that is never closed"):
        rows(table(content, name="a.csv", max_line=1000))


def test_every_broken_line_is_found(table):
    good, faults = collect(table("a\tb\nc\n\nd\te\tf\ng\th\0\ni\tj\n"))
    assert [row.values for row in good] == [("a", "b"), ("i", "j")]
    assert [fault.line for fault in faults.faults] == [2, 4, 5]
    good, faults = collect(table('a,b\n"c"x,d\n\xffe,f\ng\nh,i\n', name="a.csv"))
    assert [fault.line for fault in faults.faults] == [2, 4]
    assert len(good) == 3


def test_a_broken_first_line_does_not_hide_the_others(table):
    faults = FaultList()
    found = list(table("a\0\tb\nc\td\ne\n").collecting(faults))
    assert [row.number for row in found] == [2]
    assert [fault.line for fault in faults.faults] == [1, 3]
