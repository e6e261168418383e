"""docs/speed.md and README's table of speed, made from benchmarks/results: `python -m weft.bench.page`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from weft.bench.measure import PASSES
from weft.bench.records import RESULTS, Record

ROOT = Path(__file__).resolve().parents[2]
BEGIN, END = "<!-- speed -->", "<!-- /speed -->"

_HEAD = """\
# Speed

Made by `make docs` from the files that `weft bench speed` writes into
[benchmarks/results/](../benchmarks/results/). Before anything is timed, outputs and every gradient are held
against the reference; behind a red gate there is no number. All sides of a row ran alternately in one run;
times are medians of a call in milliseconds with quartiles, memory is what a call needs beyond its inputs
and weights. `forward` keeps nothing for gradients; `forward+backward` makes those of inputs and weights.
"""
_COLUMNS = "| case | pass | side | ms | quartiles | µs a step | by weft's time | MiB | gate |"
_BRIEF = "| hardware | case | pass | weft ms | beside it (ms, and by weft's time) |"


def newest(folder: Path) -> list[Record]:
    """Return the newest record of each subject and machine."""
    found = {}
    for path in sorted(folder.glob("*_*.json"), key=lambda path: path.stem.rpartition("_")[2]):
        found[path.stem.rpartition("_")[0]] = Record(**json.loads(path.read_text(encoding="utf-8")))
    return [found[name] for name in sorted(found)]


def page(records: list[Record]) -> str:
    """Return docs/speed.md."""
    return "\n".join([_HEAD, *(_section(record) for record in records)])


def table(records: list[Record]) -> str:
    """Return README's table: training passes of the cases shown first; nothing without records."""
    rows = [
        _brief(record, row)
        for record in records
        for row in record.rows
        if row["headline"] and row["run"] == PASSES[1] and row["sides"]
        if row["sides"]["weft"]["median_ms"] is not None
    ]
    return "\n".join([_BRIEF, _rule(_BRIEF), *rows]) if rows else ""


def write(readme: Path, speed: Path, folder: Path) -> None:
    """Write both."""
    records = newest(folder)
    speed.write_text(page(records), encoding="utf-8")
    before, rest = readme.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END)[1]
    shown = table(records)
    readme.write_text(f"{before}{BEGIN}\n{shown}{shown and chr(10)}{END}{after}", encoding="utf-8")


def _section(record: Record) -> str:
    versions = ", ".join(f"{name} {value}" for name, value in record.versions.items())
    days = sorted({f"{row['date']} ({row['commit'] or 'no commit'})" for row in record.rows})
    lines = [line for row in record.rows for line in _lines(row)]
    facts = f"{versions}; measured {', '.join(days)}."
    return "\n".join(
        [f"## {record.what}, {record.hardware}", "", facts, "", _COLUMNS, _rule(_COLUMNS), *lines, ""]
    )


def _lines(row: dict[str, Any]) -> list[str]:
    """Return a line for each side, or the one that says the gate is red."""
    said = "–" if row["error"] is None else f"{row['error']:.1e}"
    gate = f"{said} of {row['tolerance']:.0e}"
    where = f"| {row['case']} {row['dtype']} | {row['run']} |"
    if not row["sides"]:
        return [f"{where} weft | – | {row.get('failed') or '–'} | – | – | – | red: {gate} |"]
    return [
        f"{where} {name} | {_timing(side, row['steps'])} | {gate if name == 'weft' else ''} |"
        for name, side in row["sides"].items()
    ]


def _timing(side: dict[str, Any], steps: int) -> str:
    if side["median_ms"] is None:
        return f"– | {side['failed']} | – | – | –"
    low, high = side["quartiles_ms"]
    step = f"{1e3 * side['median_ms'] / steps:.2f}" if steps else "–"
    memory = "–" if side["peak_mib"] is None else f"{side['peak_mib']:,.0f}"
    return f"{side['median_ms']:.3f} | {low:.3f}–{high:.3f} | {step} | {side['times_slower']:.2f} | {memory}"


def _brief(record: Record, row: dict[str, Any]) -> str:
    peers = ", ".join(
        f"{name} {side['median_ms']:.2f} ({side['times_slower']:.2f}×)"
        for name, side in row["sides"].items()
        if name != "weft" and side["median_ms"] is not None
    )
    ours = row["sides"]["weft"]["median_ms"]
    return f"| {record.hardware} | {row['case']} {row['dtype']} | {row['run']} | **{ours:.2f}** | {peers} |"


def _rule(header: str) -> str:
    return "|" + "---|" * (header.count("|") - 1)


def main() -> None:
    """Write the page and the table."""
    speed = ROOT / "docs" / "speed.md"
    write(ROOT / "README.md", speed, ROOT / RESULTS)
    print(speed, file=sys.stderr)


if __name__ == "__main__":
    main()
