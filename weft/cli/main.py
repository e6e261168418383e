"""The program `weft` and its verbs."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from weft import __version__
from weft.cli import bench, data, demo, doctor, evaluate, explain, predict, recipes, report, train
from weft.cli.errors import guard
from weft.cli.heap import keep_freed_memory

app = typer.Typer(
    help="Train, compare and explain sequence models on your own data.",
    epilog="Settings are key=value words. `weft VERB --help` tells more.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("demo")(demo.demo)
app.command("train")(train.train)
app.command("explain")(explain.explain)
app.command("evaluate")(evaluate.evaluate)
app.command("predict")(predict.predict)
app.command("report")(report.report)
app.command("average")(report.average)
app.command("recipes")(recipes.recipes)
app.add_typer(data.app, name="data")
app.add_typer(bench.app, name="bench")
app.command("doctor")(doctor.doctor)


def _print_version(wanted: bool) -> bool:
    if wanted:
        print(f"weft {__version__}")
        raise typer.Exit
    return wanted


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Take the options that stand before a verb."""


def main() -> None:
    """Run the program on the words of the command line and leave with its exit code."""
    keep_freed_memory()
    sys.exit(guard(lambda: app(prog_name="weft", standalone_mode=False)))
