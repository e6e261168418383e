"""The sections reports share: curves, alignments, quality by length, examples."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import SequenceMatcher
from html import escape
from typing import Any

import numpy as np

from weft.evaluation.table import interval, label, length_rows, number, signatures
from weft.reporting import figures, html
from weft.reporting.entries import Alignment
from weft.reporting.html import Markup

LONGEST_DIFFERENCE = 400  # characters; longer texts are shown unmarked
LONGEST_TEXT = 1000  # characters of an example
NO_METRIC = {"step", "epoch", "split", "seconds", "tokens", "lr", "gradient_norm", "clipped"}

Summary = Mapping[str, Any]


def curves(histories: Mapping[str, figures.History], metric: str | None, share: bool) -> Markup:
    """Show the loss of every run, and beside it the validation metric to judge by."""
    histories = {name: rows for name, rows in histories.items() if rows}
    shown = {"loss": False} | ({metric: share} if metric else {})
    parts = [
        _curve(histories, name, is_share) for name, is_share in shown.items() if _is_known(histories, name)
    ]
    note = "Thin lines: training. Dots: validation, the whole validation set each time." if parts else ""
    return html.section("Learning curves", html.row(parts), html.paragraph(note, note=True))


def _curve(histories: Mapping[str, figures.History], name: str, share: bool) -> Markup:
    figure = figures.learning_curve(histories, name, share)
    return html.picture(figure, f"{label(name)} over training steps of {', '.join(histories)}")


def _is_known(histories: Mapping[str, figures.History], name: str) -> bool:
    return any(row.get(name) is not None for rows in histories.values() for row in rows)


def judged_by(histories: Mapping[str, figures.History], wanted: str | None = None) -> str | None:
    """Return the validation metric to show: `wanted` where it was measured, else the first beside loss."""
    measured = [
        name for rows in histories.values() for row in rows if row.get("split") == "valid" for name in row
    ]
    if wanted in measured:
        return wanted
    return next((name for name in measured if name not in NO_METRIC | {"loss"}), None)


def alignments(groups: Mapping[str, Sequence[Alignment]]) -> Markup:
    """Show where each model looked, a row of pictures a model."""
    parts = [
        part
        for name, group in groups.items()
        for part in (_subtitle(name) if group and name else "", html.row(map(_alignment, group)))
    ]
    has_truth = any(one.truth for group in groups.values() for one in group)
    note = (
        "Each row is an output token; the darker a cell, the more the model looked at that source token. "
        + ("Orange frames mark the true alignment. " if has_truth else "")
        + "␣ is a blank."
    )
    return html.section("Alignments", html.paragraph(note, note=True), *parts) if any(parts) else Markup("")


def _subtitle(name: str) -> Markup:
    return Markup(f"<h3>{escape(name)}</h3>")


def _alignment(one: Alignment) -> Markup:
    figure = figures.alignment(one.weights, one.source, one.target, one.title, one.truth)
    alt = f"attention of the output “{''.join(one.target)}” to the source “{''.join(one.source)}”"
    return html.picture(figure, alt, wide=True)


def by_length(summaries: Mapping[str, Summary]) -> Markup:
    """Show the first metric by source length, and the lengths there are; nothing where all are as long."""
    first = next(iter(summaries.values()))
    if len(first["lengths"]["counts"]) < 2:
        return Markup("")
    buckets = {name: summary["by_length"] for name, summary in summaries.items()}
    metric = next(iter(first["metrics"]))
    share = first["metrics"][metric]["share"]
    histogram = figures.length_histogram(first["lengths"]["edges"], first["lengths"]["counts"], first["unit"])
    pictures = [html.picture(histogram, "how many items have which source length")]
    if first["by_length"]:
        quality = figures.quality_by_length(buckets, metric, first["unit"], share)
        pictures.insert(0, html.picture(quality, f"{label(metric)} by source length"))
    return html.section("Quality by length", html.row(pictures), *_length_tables(summaries))


def _length_tables(summaries: Mapping[str, Summary]) -> list[Markup]:
    """Write the numbers of a single run; of several, the figure says enough."""
    if len(summaries) > 1:
        return []
    summary = next(iter(summaries.values()))
    header = [f"length in {summary['unit']}", "items", *map(label, summary["metrics"])]
    return [html.table(header, length_rows(summary))] if summary["by_length"] else []


def confusion(summary: Summary) -> Markup:
    """Show the confusion matrix of a classifier."""
    if "confusion" not in summary or "labels" not in summary:
        return Markup("")
    figure = figures.confusion_matrix(
        np.array(summary["confusion"]), [str(name) for name in summary["labels"]]
    )
    note = "Rows are true labels, shaded by their share; the numbers are counts."
    return html.section(
        "Confusion", html.paragraph(note, note=True), html.picture(figure, "confusion matrix", wide=True)
    )


def quality(entry: Summary, best: bool = False) -> Markup:
    """Write a value with its interval below, bold when it is the best."""
    value = number(entry["value"], entry["share"])
    return html.small(html.strong(value) if best else value, interval(entry))


def shortened(text: str) -> str:
    """Cut a long text."""
    return text if len(text) <= LONGEST_TEXT else f"{text[:LONGEST_TEXT]}…"


def judged(prediction: str, reference: str | None) -> Markup:
    """Write a prediction shaded as right or wrong, what differs from the reference marked."""
    if reference is None:
        return html.markup(prediction)
    return html.marked(differences(prediction, reference), prediction == reference)


def differences(prediction: str, reference: str) -> Markup:
    """Mark the characters of a prediction that the reference does not have, ‸ where some are missing."""
    if max(len(prediction), len(reference)) > LONGEST_DIFFERENCE:
        return html.markup(prediction)
    steps = SequenceMatcher(None, reference, prediction, autojunk=False).get_opcodes()
    return Markup("".join(_step(kind, prediction[start:end]) for kind, _, _, start, end in steps))


def _step(kind: str, text: str) -> str:
    return escape(text) if kind == "equal" else f"<mark>{escape(text) or '‸'}</mark>"


def counted_by(summary: Summary) -> Markup:
    """Say how exactly the metrics count."""
    return html.facts((f"{name} signature", text) for name, text in signatures(summary).items())
