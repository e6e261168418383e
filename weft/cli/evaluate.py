"""`weft evaluate`: how good a run is, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.overrides import parse_overrides
from weft.cli.printing import tell

if TYPE_CHECKING:
    from weft.api.run import Run

PARTS = ("test", "valid", "train")

RunPath = Annotated[str, typer.Argument(metavar="RUN", help="The folder of a run.")]
Words = Annotated[list[str] | None, typer.Argument(metavar="KEY=VALUE", show_default=False)]
Checkpoint = Annotated[str, typer.Option(metavar="NAME", help="best, last, a step, or a checkpoint's name.")]


def evaluate(
    run: RunPath,
    words: Words = None,
    part: Annotated[
        str | None, typer.Option(help="Part of the run's data: test, valid or train.", show_default="test")
    ] = None,
    checkpoint: Checkpoint = "best",
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure a run on test data, with intervals.

    Prints every metric with its interval, and by length; data.test=FILE measures on another file.
    The result is kept in RUN/evaluation.json.
    """
    from weft.cli.opening import USING, open_with
    from weft.cli.printing import print_json
    from weft.evaluation import render_table

    overrides = parse_overrides(words or [])
    part = choose_part(part, overrides.get("data", {}))
    opened = open_with(run, checkpoint, overrides, (*USING, "data", "task"))
    summary = measure(opened, part, checkpoint)
    if json:
        print_json(summary)
    else:
        print(render_table(summary), end="")


def choose_part(wanted: str | None, data: Any) -> str:
    """Return the part to measure: as told, else the one a file is given for, else test."""
    from weft.core.errors import ConfigError, nearest

    given = [part for part in PARTS if part in data]
    part = wanted or (given[0] if given else "test")
    if part not in PARTS:
        raise ConfigError(f"`--part` cannot be `{part}`.{nearest(part, PARTS)}")
    return part


def measure(run: Run, part: str, checkpoint: str) -> dict[str, Any]:
    """Evaluate a part, keep the result in the run's folder, and return it."""
    from weft.evaluation import EVALUATION, write_evaluation

    rows = run.rows(part=part)
    tell(f"{part}: {rows.description}")
    about = {
        "run": str(run.path),
        "checkpoint": run.folder.checkpoint(checkpoint).name,
        "part": part,
        "data": rows.description,
        "decoding": run.settings.plain()["decoding"],
    }
    return write_evaluation(run.path / EVALUATION, run.evaluate(part=part), about)
