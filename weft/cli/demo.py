"""`weft demo`: the whole way, from data to a comparison with pictures, on dates written in many ways."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from weft.api.run import Run
    from weft.reporting import Entry
    from weft.training import Outcome

MODELS: dict[str, dict[str, Any]] = {
    "LSTM + additive attention": {"family": "lstm", "attention": "additive"},
    "Transformer": {"family": "transformer", "layers": 2, "positions": "rotary"},
}
ITEMS, HELD_OUT, PICTURES = 10_000, 1_000, 3

LEAD = (
    "Two models with the same number of parameters learned to write dates such as “Sunday the 4th of May, "
    "1997” as 1997-05-04, character by character. No date of the test set was seen in training. The pictures "
    "show where each model looked while it wrote; a frame marks where the answer truly stands."
)


def demo(
    folder: Annotated[str | None, typer.Option(help="Where to work; default a fresh runs/demo-NN.")] = None,
    seed: Annotated[int, typer.Option(help="All chance follows from it.")] = 1,
    steps: Annotated[int, typer.Option(help="Training steps of each model.")] = 900,
) -> None:
    """Train two models on built-in data, compare them, and write a report with pictures (4 minutes)."""
    from weft.data.synthetic import make
    from weft.reporting import write_comparison_report
    from weft.runs import RunFolder

    place = RunFolder.create(folder, "demo").path
    make("dates", ITEMS, seed, place / "data", held_out=HELD_OUT)
    _tell(f"{ITEMS:,} dates to learn from, {HELD_OUT:,} to choose by, {HELD_OUT:,} to be tested on")
    entries = [_entry(name, place, seed, steps) for name in MODELS]
    page = write_comparison_report(
        place / "report.html", entries, "Dates in any writing → ISO", LEAD, _about(seed)
    )
    print(_table(entries))
    print(f"\nreport: {page}\nnext:   echo 'the 3rd of october, 1987' | weft predict {place / 'lstm'}")


def _entry(name: str, place: Path, seed: int, steps: int) -> Entry:
    """Train one model, test it, and collect what the report shows of it."""
    from weft.api.alignments import part_alignments
    from weft.api.training import start
    from weft.reporting import Entry

    _tell(f"\n{name}")
    run, outcome = start(_settings(MODELS[name], place, seed, steps), say=_tell)
    begin = time.perf_counter()
    evaluation = run.evaluate()
    seconds = time.perf_counter() - begin
    return Entry(
        name,
        run.parameters,
        evaluation,
        run.folder.metrics.read(),
        outcome.seconds,
        _speeds(run, outcome, len(evaluation.lengths) / seconds),
        part_alignments(run, count=PICTURES),
    )


def _settings(model: dict[str, Any], place: Path, seed: int, steps: int) -> Any:
    """Return the shipped recipe with another model, other places and this many steps."""
    from weft.api.settings import parse_settings
    from weft.cli.recipes import load
    from weft.core.config import merge

    data = {part: str(place / "data" / f"{part}.tsv") for part in ("train", "valid", "test")}
    changes = {"model": model, "data": data, "seed": seed, "run": str(place / model["family"])}
    changes["train"] = {"steps": steps, "validate_every": max(steps // 6, 1)}
    return parse_settings(merge(load("translate/dates"), changes))


def _speeds(run: Run, outcome: Outcome, tested: float) -> dict[str, float]:
    rows = [row for row in run.folder.metrics.read() if row["split"] == "train"]
    tokens = rows[-1].get("tokens", 0) if rows else 0
    training = {"training, target characters/s": tokens / outcome.seconds} if tokens else {}
    return {**training, "writing, dates/s": tested}


def _table(entries: list[Entry]) -> str:
    """Return one line a model: parameters, quality with its interval, time, speed."""
    from weft.evaluation import summarise
    from weft.evaluation.table import align, interval, number
    from weft.reporting.entries import duration, rate

    rows = [["model", "parameters", "exactly right", "95 % interval", "training", "dates/s"]]
    for entry in entries:
        exact = summarise(entry.evaluation)["metrics"]["exact_match"]
        quality = number(exact["value"], exact["share"])
        speed = rate(entry.speeds["writing, dates/s"])
        time_taken = duration(entry.seconds)
        rows.append([entry.name, f"{entry.parameters:,}", quality, interval(exact), time_taken, speed])
    return align(rows)


def _about(seed: int) -> dict[str, str]:
    import platform

    import torch

    from weft import __version__

    return {
        "data": f"{ITEMS:,} training dates, {HELD_OUT:,} test dates, seed {seed}",
        "machine": f"{platform.machine()}, {torch.get_num_threads()} threads",
        "versions": f"weft {__version__}, torch {torch.__version__}, Python {platform.python_version()}",
    }


def _tell(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
