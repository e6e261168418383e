"""Numeric series from tables: dates, several series, missing numbers."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.data.rows import ReadOptions
from weft.data.source import RowSource, collect


def source(tmp_path, content, name="a.csv", **options):
    path = tmp_path / name
    path.write_text(content, encoding="utf-8", newline="")
    return RowSource(path, ReadOptions(**options), ("values",))


def test_dates_and_header_are_found(tmp_path):
    rows = source(tmp_path, "date,a,b\n2016-07-01 00:00:00,1,2\n2016-07-01 01:00:00,3,4.5\n")
    assert [row.values[0].tolist() for row in rows] == [[[1, 2], [3, 4.5]]]
    assert rows.description.endswith("series; header; dates from date; 2 channels: a, b")


def test_bare_numbers_need_nothing(tmp_path):
    rows = source(tmp_path, "1,2\n3,4\n")
    assert [row.values[0].tolist() for row in rows] == [[[1, 2], [3, 4]]]
    assert rows.description.endswith("series; no header; 2 channels: column 1, column 2")


def test_tabs_and_columns_by_name(tmp_path):
    rows = source(tmp_path, "t\tx\ty\n1\t2\t3\n4\t5\t6\n", "a.tsv", columns=("y", "t"))
    assert [row.values[0].tolist() for row in rows] == [[[3, 1], [6, 4]]]


def test_several_series_by_name(tmp_path):
    content = (
        "shop,day,sold\nA,2020-01-01,1\nB,2020-01-01,7\nA,2020-01-02,2\nB,2020-01-02,8\nA,2020-01-03,3\n"
    )
    rows = source(tmp_path, content, series="shop", date="day")
    assert [(row.number, row.values[0].ravel().tolist()) for row in rows] == [(2, [1, 2, 3]), (3, [7, 8])]
    assert "one series for each shop; 1 channels: sold" in rows.description


def test_numbers_are_32_bits(tmp_path):
    assert next(iter(source(tmp_path, "0.1\n0.2\n"))).values[0].dtype == np.float32


def test_declared_words_are_missing(tmp_path):
    rows = source(tmp_path, "a,b\n1,NA\n2,3\n", missing=("NA",))
    assert np.isnan(next(iter(rows)).values[0][0, 1])


BROKEN = {
    "NaN": ("a,b\n1,2\n3,nan\n", {}, r"a\.csv, line 3: 'nan' is not a finite number"),
    "a gap": ("a,b\n1,2\n3,\n", {}, r"line 3: '' is not a number\. A number is missing"),
    "ragged": ("a,b\n1,2\n3\n", {}, r"line 3: has 1 column, but line 1 has 2"),
    "back in time": (
        "d,x\n2020-01-02,1\n2020-01-03,2\n2020-01-01,3\n",
        {},
        r"line 4: goes back in time, from 2020-01-03 00:00:00 to 2020-01-01 00:00:00\. Sort",
    ),
    "no such column": ("a,b\n1,2\n", {"date": "day"}, "has no column `day`"),
    "only dates": ("date\n2020-01-01\n2020-01-02\n", {}, "has no column of numbers"),
    "empty": ("", {}, "is empty"),
}


@pytest.mark.parametrize("what", BROKEN)
def test_what_is_broken_is_refused(tmp_path, what):
    content, options, message = BROKEN[what]
    with pytest.raises(DataError, match=message):
        list(source(tmp_path, content, **options))


def test_every_broken_line_is_found(tmp_path):
    _, faults = collect(source(tmp_path, "a,b\n1,2\nx,3\n4\n5,6\n"))
    assert [fault.line for fault in faults.faults] == [3, 4]


def test_other_kinds_are_refused(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("1,2\n")
    with pytest.raises(DataError, match="a series gives values, but values, label are wanted"):
        list(RowSource(path, ReadOptions(format="series"), ("values", "label")))
