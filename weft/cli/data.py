"""`weft data`: what is there, what a file holds, and data made to measure."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

app = typer.Typer(help="Look at data, or make some.", no_args_is_help=True)

Words = Annotated[list[str] | None, typer.Argument(metavar="FILE|KEY=VALUE", show_default=False)]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("check")
def check_files(words: Words = None, json: Json = False) -> int:
    """Say what files hold, and every line that is broken.

    Plain words are the training, validation and test file (two parallel files: one word, a comma
    between). task=TASK or kinds=text,label says what the fields are; data.KEY=VALUE how to read.
    Ends with 2 when something is broken.
    """
    from weft.cli.data_check import open_sources, read_options, say_guess
    from weft.cli.printing import print_json
    from weft.core.errors import EXIT_CODES
    from weft.data.check import check, render

    options = read_options(words or [])
    report = check(open_sources(options), options.data.max_length, options.unit)
    if json:
        print_json(report.plain())
    else:
        print(render(report) + say_guess(options))
    return EXIT_CODES["your input" if report.faults else "done"]


@app.command("make")
def make_set(
    name: Annotated[str, typer.Argument(metavar="NAME", help="dates, adding, copy or reverse")],
    words: Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", show_default=False)] = None,
    force: Annotated[bool, typer.Option("--force", help="Write over files that are there.")] = False,
) -> None:
    """Write a data set whose answers are known.

    Keys: n= (training items, 10000), held_out= (items of valid and of test, n / 10), length=,
    seed= (1), folder= (data/NAME).
    """
    from weft.cli.data_make import make_files
    from weft.cli.overrides import parse_overrides

    for part, path in make_files(name, parse_overrides(words or []), force).items():
        print(f"{part:<5}  {path}")


@app.command("prepare")
def prepare_sets(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE] KEY=VALUE", show_default=False)
    ] = None,
) -> None:
    """Encode data before training, which then starts at once; the words of `weft train`."""
    from weft.cli.data_prepare import prepare

    for line in prepare(words or []):
        print(line, flush=True)


@app.command("list")
def list_sets(json: Json = False) -> None:
    """List the named data sets: which are found, where, how large."""
    from weft.cli.named import NAMED_SETS
    from weft.cli.printing import print_json, print_table

    found = [_describe_set(name, *entry) for name, entry in NAMED_SETS.items()]
    if json:
        print_json(found)
        return
    print_table(("name", "task", "files", "size", "folder"), [_row(entry) for entry in found])
    if not all(entry["found"] for entry in found):
        print("Set WEFT_DATA to the folder that holds the missing ones.")


def _describe_set(name: str, task: str, files: tuple[str, ...]) -> dict[str, Any]:
    """Return what is known of one set as plain data."""
    places = {file: _find(file) for file in files}
    paths = [path for path in places.values() if path]
    return {
        "name": name,
        "task": task,
        "found": len(paths) == len(files),
        "files": files,
        "missing": [file for file, path in places.items() if not path],
        "bytes": sum(path.stat().st_size for path in paths),
        "folder": str(paths[0].parent) if paths else None,
    }


def _find(file: str) -> Path | None:
    from weft.data.locate import DataMissing, locate

    try:
        return locate(file)
    except DataMissing:
        return None


def _row(entry: dict[str, Any]) -> tuple[str, ...]:
    there = len(entry["files"]) - len(entry["missing"])
    size = f"{entry['bytes'] / 1e6:,.1f} MB" if there else "-"
    return (
        entry["name"],
        entry["task"],
        f"{there}/{len(entry['files'])}",
        size,
        entry["folder"] or "not found",
    )
