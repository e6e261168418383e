"""metrics.jsonl: appended, cut, read."""

import pytest

from weft.core.errors import ArtefactError
from weft.runs import MetricsFile


def test_rows_come_back_and_what_is_no_number_is_null(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.append({"step": 1, "loss": 0.1, "name": "ü\u2028"})
    file.append({"step": 2, "loss": float("nan")})
    assert file.read() == [{"step": 1, "loss": 0.1, "name": "ü\u2028"}, {"step": 2, "loss": None}]
    assert MetricsFile(file.path).rows == 2


def test_cutting_keeps_the_first_rows_and_drops_a_half_written_line(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    for step in range(5):
        file.append({"step": step})
    with open(file.path, "a") as handle:
        handle.write('{"step": 5, "lo')
    again = MetricsFile(file.path)
    assert again.rows == 5
    assert again.cut(3) == 0
    again.append({"step": 9})
    assert [row["step"] for row in again.read()] == [0, 1, 2, 9]


def test_missing_rows_are_counted_not_invented(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    assert file.cut(4) == 4
    file.append({"step": 1})
    assert file.cut(4) == 3
    assert file.rows == 1


def test_a_damaged_row_is_named(tmp_path):
    file = MetricsFile(tmp_path / "metrics.jsonl")
    file.append({"step": 1})
    file.path.write_text(file.path.read_text() + "}\n")
    with pytest.raises(ArtefactError, match=r"metrics.jsonl, line 2 is damaged"):
        file.read()
