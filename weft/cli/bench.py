"""`weft bench`: how fast weft is here, beside its peers."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from weft.bench import Row

app = typer.Typer(help="Measure weft on this machine.", no_args_is_help=True)

_HEADER = ("case", "pass", "side", "ms", "quartiles", "by weft's time", "MiB")


@app.callback()
def options() -> None:
    """Take the options that stand before a verb."""


@app.command()
def speed(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[rnn|attention|loss|tcn]", show_default=False, help="One of them; without, all."
        ),
    ] = None,
    only: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only cases whose title holds this.")
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0, help="Time for each case, behind its gate and a warm-up.")
    ] = 10.0,
    quick: Annotated[bool, typer.Option("--quick", help="Tiny sizes, kept only with --out.")] = False,
    device: Annotated[
        str | None, typer.Option(metavar="DEVICE", help="cuda or cpu; without, the GPU if there is one.")
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(metavar="FOLDER", show_default="benchmarks/results", help="Where results are kept."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Time weft's layers and ops beside their peers on this machine.

    Each case first holds weft's outputs and gradients against the reference; one that differs gets no
    number, and the verb ends with 1. Then all sides run alternately.
    """
    from weft.bench import RESULTS, SUBJECTS
    from weft.cli.printing import print_json
    from weft.core.errors import WeftError

    folder = out or (None if quick else RESULTS)
    rows = []
    for subject in [what] if what else SUBJECTS:
        rows += _time_subject(subject, only, seconds, quick, device, folder)
    if json:
        print_json([_plain(row) for row in rows])
    else:
        _draw(rows)
    red = sorted({f"{row.case} {row.dtype} ({_reason(row)})" for row in rows if not row.green})
    if red:
        raise WeftError(f"{len(red)} cases differ from the reference or failed: {'; '.join(red)}.")


def _time_subject(
    subject: str, only: str | None, seconds: float, quick: bool, device: str | None, folder: Path | None
) -> list[Row]:
    """Time the cases of one subject and keep them after each."""
    from weft.bench import measure, new_record, save, select
    from weft.cli.printing import tell

    where = _device(device)
    cases = select(subject, "quick" if quick else where.type, only)
    record = None if folder is None else new_record(subject, where, folder)
    rows = []
    for i, case in enumerate(cases):
        tell(f"{subject} {i + 1}/{len(cases)}  {case.title}")
        for row in measure(case, where, seconds):
            rows.append(row)
            if record is not None:
                record.add(row)
        if record is not None and folder is not None:
            save(record, folder)
    return rows


def _device(name: str | None) -> Any:
    import torch

    from weft.core.errors import InputError

    if name not in (None, "cpu", "cuda"):
        raise InputError(f"`--device` must be cuda or cpu, but is `{name}`.")
    found = torch.cuda.is_available()
    if name == "cuda" and not found:
        raise InputError("`--device` is cuda, but torch finds no GPU here. Try --device cpu.")
    return torch.device(name or ("cuda" if found else "cpu"))


def _plain(row: Row) -> dict[str, Any]:
    from dataclasses import asdict

    return {**asdict(row), "green": row.green}


def _reason(row: Row) -> str:
    """Return what keeps a row from having numbers."""
    return row.failed or ("" if row.error is None else f"{row.error:.1e}")


def _draw(rows: list[Row]) -> None:
    """Print the table, drawn on a terminal and plain in a pipe."""
    from weft.cli.printing import print_table

    lines = [line for row in rows for line in _lines(row)]
    if not sys.stdout.isatty():
        print_table(_HEADER, lines)
        return
    from rich.console import Console
    from rich.table import Table

    table = Table(box=None)
    for i, name in enumerate(_HEADER):
        table.add_column(name, justify="right" if i > 2 else "left")
    for line in lines:
        table.add_row(*line, style="bold" if line[2] == "weft" else None)
    Console().print(table)


def _lines(row: Row) -> Iterator[tuple[str, ...]]:
    where = (f"{row.case} {row.dtype}", row.run)
    if not row.green:
        limit = "–" if row.failed else f"> {row.tolerance:.0e}"
        yield (*where, "weft", "failed" if row.failed else "red gate", _reason(row), limit, "–")
    for name, side in row.sides.items():
        if side.median_ms is None or side.quartiles_ms is None or side.times_slower is None:
            yield (*where, name, "–", side.failed or "", "–", "–")
            continue
        low, high = side.quartiles_ms
        memory = "–" if side.peak_mib is None else f"{side.peak_mib:,.0f}"
        times = (f"{side.median_ms:.3f}", f"{low:.3f}–{high:.3f}", f"{side.times_slower:.2f}")
        yield (*where, name, *times, memory)
