"""Result files, and the pages made of them."""

import json
from pathlib import Path

import torch

from weft.bench import new_record, page, save
from weft.bench.measure import Row, Timing

ROOT = Path(__file__).resolve().parents[2]
CPU = torch.device("cpu")
MARKS = f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n"


def row(error: float = 1e-6, ms: float = 2.0) -> Row:
    made = Row("LSTM", "fp32", "forward+backward", error, 1e-4, 10, True)
    if made.green:
        made.sides = {
            "weft": Timing(ms, (1.9, 2.1), 1.0, 9, 64.0),
            "torch.nn": Timing(6.0, (5.9, 6.1), 3.0, 9, 128.0),
            "other": Timing(failed="no compiler"),
        }
    return made


def written(tmp_path: Path, *rows: Row) -> str:
    """Keep the rows, write the pages and return both."""
    record = new_record("rnn", CPU, tmp_path)
    for one in rows:
        record.add(one)
    save(record, tmp_path)
    readme, speed = tmp_path / "README.md", tmp_path / "speed.md"
    readme.write_text(MARKS)
    page.write(readme, speed, tmp_path)
    return readme.read_text() + speed.read_text()


def test_a_file_names_hardware_versions_day_and_commit(tmp_path):
    record = new_record("rnn", CPU, tmp_path)
    record.add(row())
    path = save(record, tmp_path)
    assert path.name.startswith("rnn_")
    kept = json.loads(path.read_text())
    assert kept["versions"]["torch"] == torch.__version__
    assert kept["hardware"].endswith("1 threads")
    assert kept["rows"][0]["date"][:7] == path.stem[-7:]
    assert kept["rows"][0]["sides"]["weft"]["quartiles_ms"] == [1.9, 2.1]


def test_a_case_that_failed_shows_why(tmp_path):
    one = row()
    one.error, one.sides, one.failed = None, {}, "RuntimeError: no room"
    text = written(tmp_path, one)
    assert "| RuntimeError: no room | – | – | – | red: – of 1e-04 |" in text
    assert "**" not in text


def test_a_row_measured_again_takes_the_place_of_the_old_one(tmp_path):
    for ms in (2.0, 1.0):
        record = new_record("rnn", CPU, tmp_path)
        record.add(row(ms=ms))
        save(record, tmp_path)
    assert [old["sides"]["weft"]["median_ms"] for old in new_record("rnn", CPU, tmp_path).rows] == [1.0]


def test_the_pages_show_every_side_and_the_first_page_in_short(tmp_path):
    text = written(tmp_path, row())
    assert "| LSTM fp32 | forward+backward | **2.00** | torch.nn 6.00 (3.00×) |" in text
    assert "| weft | 2.000 | 1.900–2.100 | 200.00 | 1.00 | 64 | 1.0e-06 of 1e-04 |" in text
    assert "| other | – | no compiler | – | – | – |" in text
    assert text.startswith(f"before\n{page.BEGIN}\n| hardware")


def test_a_red_gate_shows_no_number(tmp_path):
    text = written(tmp_path, row(error=1.0))
    assert "| weft | – | – | – | – | – | red: 1.0e+00 of 1e-04 |" in text
    assert f"{page.BEGIN}\n{page.END}" in text


def test_without_files_nothing_is_shown(tmp_path):
    readme, speed = tmp_path / "README.md", tmp_path / "speed.md"
    readme.write_text(MARKS)
    page.write(readme, speed, tmp_path / "none")
    assert f"{page.BEGIN}\n{page.END}" in readme.read_text()
    assert "##" not in speed.read_text()


def test_the_pages_of_the_project_are_current(tmp_path):
    readme, speed = tmp_path / "README.md", tmp_path / "speed.md"
    now = (ROOT / "README.md").read_text(encoding="utf-8")
    readme.write_text(now, encoding="utf-8")
    page.write(readme, speed, ROOT / "benchmarks" / "results")
    assert readme.read_text(encoding="utf-8") == now, "run `make docs`"
    assert speed.read_text(encoding="utf-8") == (ROOT / "docs" / "speed.md").read_text(encoding="utf-8")
