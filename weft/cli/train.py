"""`weft train`: from a recipe and settings to a run."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.errors import translate
from weft.cli.overrides import split_words
from weft.cli.printing import tell
from weft.core.errors import ConfigError, Interrupted, WeftError

if TYPE_CHECKING:
    from weft.api.run import Run
    from weft.training import Outcome

Say = Callable[[str], object]


def train(
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[RECIPE] KEY=VALUE", show_default=False)
    ] = None,
    resume: Annotated[
        str | None, typer.Option("--resume", metavar="RUN", help="Go on with a run that was stopped.")
    ] = None,
    report: Annotated[bool, typer.Option(help="Write report.html at the end.")] = True,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
    json: Annotated[bool, typer.Option("--json", help="Print the outcome as JSON.")] = False,
) -> None:
    """Train a model on your data, into a run folder.

    RECIPE is a YAML file or a name from `weft recipes`; settings come on top of it, or stand alone:
    weft train task=translate data.train=pairs.tsv model=lstm+additive. Ctrl-C saves and stops.
    """
    say = _silent if quiet else tell
    run, outcome = go_on(resume, words or [], quiet, say) if resume else begin(words or [], quiet, say)
    page = _report(run) if report else None
    if json:
        from weft.cli.printing import print_json

        print_json(describe(run, outcome))
    else:
        print(render(run, outcome, page))


def begin(words: Sequence[str], quiet: bool, say: Say) -> tuple[Run, Outcome]:
    """Train a new run as a recipe and settings say."""
    from weft.api.training import start

    return start(read_settings(words), quiet=quiet, say=say)


def read_settings(words: Sequence[str]) -> Any:
    """Read the words of the command line: a recipe, and settings laid over it."""
    from weft.api.settings import normalise, parse_settings
    from weft.cli.recipes import load
    from weft.core.config import merge

    names, overrides = split_words(words)
    if len(names) > 1:
        raise ConfigError(f"One recipe at a time can be trained, but here are {', '.join(names)}.")
    if not names and not {"task", "data"} & set(overrides):
        raise ConfigError(
            "There is nothing to train. Name a recipe (`weft recipes` lists them), or give "
            "task=TASK data.train=FILE."
        )
    recipe = normalise(load(names[0])) if names else {}
    return parse_settings(merge(recipe, normalise(overrides)))


def go_on(path: str, words: Sequence[str], quiet: bool, say: Say) -> tuple[Run, Outcome]:
    """Go on with a run."""
    from weft.api.training import resume

    names, overrides = split_words(words)
    if names:
        raise ConfigError(f"A run that goes on has its recipe; leave `{names[0]}` out.")
    return resume(path, overrides, quiet=quiet, say=say)


def _report(run: Run) -> str | None:
    """Write the report; the training is done, so what hinders it (unless a bug of ours) is only told."""
    from weft.api.report import write_report

    try:
        return str(write_report(run))
    except Exception as error:
        known = error if isinstance(error, WeftError) else translate(error)
        if known is None or isinstance(known, Interrupted):
            raise
        tell(f"No report was written: {' '.join(str(known).split())}")
        return None


def describe(run: Run, outcome: Outcome) -> dict[str, Any]:
    """Return what came of a training as plain data."""
    from dataclasses import asdict

    return {"run": str(run.path), "parameters": run.parameters, **asdict(outcome)}


def render(run: Run, outcome: Outcome, page: str | None) -> str:
    """Return what came of a training, and what to type next."""
    from weft.training.progress import duration

    best = "  ".join(f"{name} {value:.4g}" for name, value in outcome.best.items())
    ended = f"{outcome.reason} reached" if outcome.reason else "ended"
    place = f"step {outcome.step:,}, epoch {outcome.epoch:,}"
    facts = {
        "done": f"{ended} at {place}, after {duration(outcome.seconds)}",
        "best": f"{best}  (validation, step {outcome.best_step:,})" if best else "",
        "run": str(run.path),
        "report": page or "",
    }
    lines = [f"{name + ':':<8}{fact}" for name, fact in facts.items() if fact]
    return "\n".join([*lines, "next:", *(f"  {line}" for line in next_commands(run, outcome))])


def next_commands(run: Run, outcome: Outcome) -> list[str]:
    """Return what a person is likely to type next."""
    path = shlex.quote(str(run.path))
    return [
        f"weft evaluate {path}",
        f"weft predict {path} < FILE",
        f"weft train --resume {path}{_more(outcome)}",
    ]


def _more(outcome: Outcome) -> str:
    """Return the setting that lets a finished training go on for as long again."""
    doubled = {
        "steps": f" train.steps={2 * outcome.step}",
        "epochs": f" train.epochs={2 * outcome.epoch}",
        "minutes": f" train.minutes={2 * outcome.seconds / 60:.3g}",
    }
    return doubled.get(outcome.reason, "")


def _silent(line: str) -> None:
    pass
