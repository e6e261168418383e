"""`weft explain`: what a configuration means, before any training."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from weft.explain import Explanation


def explain(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE] KEY=VALUE", show_default=False)
    ] = None,
    probe: Annotated[bool, typer.Option(help="Make ten steps on the real data to estimate the time.")] = True,
    length: Annotated[
        int, typer.Option(min=1, help="Tokens of a text, where there are no data.", metavar="N")
    ] = 32,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say what a model and its training mean, before any: parameters, memory, arithmetic, time.

    RECIPE and settings are those of `weft train`. Without data.train= the vocabularies of texts are
    taken as large as data.vocabulary= says.
    """
    from weft.api.explaining import explain as explain_settings
    from weft.cli.printing import print_json
    from weft.cli.train import read_settings
    from weft.explain import render

    explanation = explain_settings(read_settings(words or []), probe=probe, length=length)
    if json:
        print_json(explanation.plain())
    elif sys.stdout.isatty():
        _draw(explanation)
    else:
        print(render(explanation))


def _draw(explanation: Explanation) -> None:
    """Draw the tables on a terminal."""
    from rich.console import Console
    from rich.table import Table

    from weft.explain.table import tables

    console = Console()
    for title, header, rows in tables(explanation):
        table = Table(title=title, title_justify="left", show_header=any(header), box=None)
        for i, name in enumerate(header):
            table.add_column(name, justify="right" if i else "left")
        for row in rows:
            table.add_row(*row, style="bold" if row[0] in ("all", "training", "use") else None)
        console.print(table, "")
    for line in explanation.warnings():
        console.print(f"[yellow]Warning:[/yellow] {line}")
