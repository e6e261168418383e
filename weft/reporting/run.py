"""report.html of one run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.core.text import dump_yaml
from weft.evaluation import EVALUATION, read_evaluation, summarise
from weft.evaluation.table import arrow, baseline, label
from weft.metrics import Evaluation
from weft.reporting import html, sections
from weft.reporting.entries import Alignment, duration, rate
from weft.runs import RunFolder
from weft.runs.storage import replace_file

REPORT = "report.html"


def write_run_report(
    folder: Path | str,
    alignments: Sequence[Alignment] = (),
    evaluation: Evaluation | None = None,
    parameters: int | None = None,
) -> Path:
    """Write report.html into a run's folder and return its path.

    Without `evaluation` the one in the folder's evaluation.json is shown, if there is one.
    """
    run = RunFolder.open(folder)
    history = run.metrics.read()
    summary = _summary(run.path, evaluation)
    first = next(iter(summary["metrics"]), None) if summary else None
    metric = sections.judged_by({"": history}, first)
    share = bool(summary and metric in summary["metrics"] and summary["metrics"][metric]["share"])
    parts = [
        html.table(["", ""], _at_a_glance(history, summary, parameters)),
        sections.curves({"this run": history}, metric, share),
        sections.alignments({"": alignments}),
        *(_evaluated(summary) if summary else []),
        html.section("Configuration", html.preformatted(dump_yaml(run.config()))),
    ]
    path = run.path / REPORT
    replace_file(path, html.page(f"Run {run.path.name}", parts, "Written by weft.").encode())
    return path


def _summary(folder: Path, evaluation: Evaluation | None) -> Mapping[str, Any] | None:
    if evaluation is not None:
        return summarise(evaluation)
    path = folder / EVALUATION
    return read_evaluation(path) if path.exists() else None


def _at_a_glance(
    history: Sequence[Mapping[str, Any]], summary: Mapping[str, Any] | None, parameters: int | None
) -> list[list[str]]:
    """Return the table a reader wants first: size, quality, time, speed."""
    rows = [["parameters", f"{parameters:,}"]] if parameters is not None else []
    for name, entry in summary["metrics"].items() if summary else ():
        rows.append([f"{label(name)}\u00a0{arrow(entry)}", sections.quality(entry, best=True)])
    if summary:
        rows += map(list, baseline(summary))
        rows.append(["evaluated on", f"{summary['items']:,} items"])
    return rows + _training(history)


def _training(history: Sequence[Mapping[str, Any]]) -> list[list[str]]:
    if not history:
        return [["training", "no step recorded yet"]]
    last = history[-1]
    seconds = max((row.get("seconds") or 0.0 for row in history), default=0.0)
    tokens = max((row.get("tokens") or 0 for row in history), default=0)
    rows = [["training steps", f"{last['step']:,}"], ["training time", duration(seconds)]]
    if tokens and seconds:
        rows.append(["training speed", f"{rate(tokens / seconds)} targets/s"])
    return rows


def _evaluated(summary: Mapping[str, Any]) -> list[str]:
    return [
        sections.by_length({"this run": summary}),
        sections.confusion(summary),
        html.section("Examples", *_examples(summary)),
        sections.counted_by(summary),
    ]


def _examples(summary: Mapping[str, Any]) -> list[str]:
    """Show the first items, then the first wrong ones."""
    examples = summary["examples"]
    if not examples:
        return []
    columns = [name for name in ("source", "reference", "prediction") if name in examples[0]]
    rows = [[_cell(example, name) for name in columns] for example in examples]
    judged = ", then the first wrong ones after them" if "right" in examples[0] else ""
    note = f"The first items of the file{judged}."
    return [html.paragraph(note, note=True), html.table(columns, rows, kind="text")]


def _cell(example: Mapping[str, Any], name: str) -> str:
    if name != "prediction":
        return sections.shortened(example[name])
    return sections.judged(example[name], example["reference"] if "right" in example else None)
