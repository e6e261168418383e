"""report.html of several runs on the same data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from weft.core.errors import InputError
from weft.evaluation import summarise
from weft.evaluation.table import arrow, label, number
from weft.reporting import html, sections
from weft.reporting.entries import Entry, duration, rate
from weft.reporting.html import Markup
from weft.runs.storage import replace_file

FIRST, WRONG = 6, 8  # examples: the first items, and the first on which some model is wrong

Summaries = Mapping[str, Mapping[str, Any]]


def write_comparison_report(
    path: Path,
    entries: Sequence[Entry],
    title: str = "Comparison",
    lead: str = "",
    about: Mapping[str, str] | None = None,
) -> Path:
    """Write a self-contained page that compares runs, and return its path.

    `lead` says in a sentence what was done; `about` lists data, hardware, versions at the end.
    """
    _require_same_items(entries)
    summaries = {entry.name: summarise(entry.evaluation) for entry in entries}
    histories = {entry.name: entry.history for entry in entries}
    metric, judge = next(iter(next(iter(summaries.values()))["metrics"].items()))
    shown = sections.judged_by(histories, metric)
    parts = [
        html.paragraph(lead),
        html.paragraph(verdict(summaries)),
        html.table(_header(entries, summaries), _rows(entries, summaries)),
        html.paragraph(_reading(summaries), note=True),
        sections.curves(histories, shown, judge["share"] and shown == metric),
        sections.alignments({entry.name: entry.alignments for entry in entries}),
        html.section("Examples", *_examples(entries)),
        sections.by_length(summaries),
        html.section(
            "How it was made", html.facts((about or {}).items()), sections.counted_by(_first(summaries))
        ),
    ]
    replace_file(path, html.page(title, parts, "Written by weft.").encode())
    return path


def _require_same_items(entries: Sequence[Entry]) -> None:
    counts = {entry.name: len(entry.evaluation.lengths) for entry in entries}
    if not entries or len(counts) < len(entries) or len(set(counts.values())) > 1:
        raise InputError(
            "A comparison needs runs of different names evaluated on the same items, but got "
            f"{', '.join(f'{entry.name} ({counts[entry.name]:,} items)' for entry in entries) or 'none'}."
        )


def verdict(summaries: Summaries) -> str:
    """Say in a sentence which run is best by the first metric, and whether the intervals part."""
    metric, entries = _by_metric(summaries)
    ranked = _ranked(entries)
    if len(ranked) < 2:
        return ""
    best, second = ranked[:2]
    values = {name: number(entries[name]["value"], entries[name]["share"]) for name in (best, second)}
    sentence = (
        f"By {label(metric)}, {best} comes first with {values[best]}, then {second} with {values[second]}"
    )
    if entries[best]["value"] == entries[second]["value"]:
        return f"By {label(metric)}, {best} and {second} are equal: {values[best]}."
    meeting = "overlap" if _overlap(entries[best], entries[second]) else "do not overlap"
    return f"{sentence}; their intervals {meeting}."


def _by_metric(summaries: Summaries) -> tuple[str, dict[str, Mapping[str, Any]]]:
    """Return the first metric and what each run has for it."""
    metric = next(iter(_first(summaries)["metrics"]))
    return metric, {name: summary["metrics"][metric] for name, summary in summaries.items()}


def _ranked(entries: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """Return the names with a value, best first."""
    known = {name: entry for name, entry in entries.items() if entry["value"] is not None}
    sign = {"higher": -1, "lower": 1}
    return sorted(known, key=lambda name: sign[known[name]["better"]] * known[name]["value"])


def _overlap(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a["low"] <= b["high"] and b["low"] <= a["high"]


def _first(summaries: Summaries) -> Mapping[str, Any]:
    return next(iter(summaries.values()))


def _header(entries: Sequence[Entry], summaries: Summaries) -> list[str]:
    metrics = [f"{label(name)}\u00a0{arrow(entry)}" for name, entry in _first(summaries)["metrics"].items()]
    return ["model", "parameters", *metrics, "training time", *_speeds(entries)]


def _speeds(entries: Sequence[Entry]) -> list[str]:
    """Return every speed some run was timed for, in order of appearance."""
    return list(dict.fromkeys(name for entry in entries for name in entry.speeds))


def _rows(entries: Sequence[Entry], summaries: Summaries) -> list[list[str]]:
    metrics = list(_first(summaries)["metrics"])
    best = {m: _ranked({name: s["metrics"][m] for name, s in summaries.items()})[:1] for m in metrics}
    return [
        [
            html.strong(entry.name),
            f"{entry.parameters:,}",
            *(sections.quality(summaries[entry.name]["metrics"][m], entry.name in best[m]) for m in metrics),
            duration(entry.seconds) if entry.seconds else "–",
            *(rate(entry.speeds[name]) if name in entry.speeds else "–" for name in _speeds(entries)),
        ]
        for entry in entries
    ]


def _reading(summaries: Summaries) -> str:
    return (
        f"Below each value its 95 % interval, by bootstrap over {_first(summaries)['items']:,} test items. "
        "↑ higher is better, ↓ lower is better."
    )


def _examples(entries: Sequence[Entry]) -> list[Markup]:
    """Show the same items for every model: the first ones, then the first where some model is wrong."""
    first = entries[0].evaluation
    if any(entry.evaluation.predictions is None for entry in entries):
        return []
    shown = _shown(entries)
    columns: dict[str, Sequence[str]] = {}
    if first.sources is not None:
        columns["source"] = first.sources
    if first.references is not None:
        columns["reference"] = first.references
    rows = [
        [*(column[i] for column in columns.values()), *(_prediction(entry, i) for entry in entries)]
        for i in shown
    ]
    note = "The first test items, then the first on which some model is wrong; ‸ marks what is missing."
    header = [*columns, *(entry.name for entry in entries)]
    return [html.paragraph(note, note=True), html.table(header, rows, kind="text")]


def _shown(entries: Sequence[Entry]) -> list[int]:
    count = len(entries[0].evaluation.predictions or [])
    later = range(min(FIRST, count), count)
    wrong = [i for i in later if any(not _is_right(entry, i) for entry in entries)]
    return [*range(min(FIRST, count)), *wrong[:WRONG]]


def _wanted(entry: Entry) -> list[str] | None:
    """Return what predictions must equal, if they must equal anything."""
    return entry.evaluation.references if entry.evaluation.exact else None


def _is_right(entry: Entry, i: int) -> bool:
    predictions, references = entry.evaluation.predictions or [], _wanted(entry)
    return references is None or predictions[i] == references[i]


def _prediction(entry: Entry, i: int) -> Markup:
    predictions, references = entry.evaluation.predictions or [], _wanted(entry)
    return sections.judged(predictions[i], references[i] if references is not None else None)
