"""`weft report` and `weft average`: what is made of a run afterwards."""

from __future__ import annotations

import shlex
from typing import Annotated

import typer

from weft.cli.evaluate import RunPath, Words
from weft.cli.overrides import parse_overrides
from weft.cli.printing import tell


def report(
    run: RunPath,
    words: Words = None,
    pictures: Annotated[int, typer.Option(min=0, max=50, help="How many alignments to draw.")] = 4,
) -> None:
    """Write RUN/report.html, one file that works offline.

    It shows learning curves, quality by length, examples, and where a translating model looked.
    """
    from weft.api.report import write_report
    from weft.cli.opening import USING, open_with
    from weft.evaluation import EVALUATION

    opened = open_with(run, "best", parse_overrides(words or []), (*USING, "data"))
    if not (opened.path / EVALUATION).exists():
        path = shlex.quote(run)
        tell(f"Not evaluated yet: `weft evaluate {path}` gives the report its test results.")
    print(write_report(opened, pictures, tell))


def average(
    run: RunPath, last: Annotated[int, typer.Option(min=2, help="How many checkpoints, the newest.")] = 3
) -> None:
    """Average the weights of the last checkpoints into one more."""
    from weft.core.errors import InputError
    from weft.runs import RunFolder

    folder = RunFolder.open(run)
    with folder.lock():
        found = folder.checkpoints()[-last:]
        if len(found) < last:
            raise InputError(
                f"{run} has {len(found)} checkpoints, but {last} are to be averaged. "
                f"Try a smaller --last, or train with train.keep={last} and a smaller train.checkpoint_every."
            )
        mean = folder.save_average(found)
    print(f"{mean.path}: mean of {', '.join(checkpoint.name for checkpoint in found)}")
    print(f"next:\n  weft evaluate {shlex.quote(run)} --part valid --checkpoint {mean.name}")
