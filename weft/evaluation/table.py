"""Numbers and tables as people read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

NONE = "–"


def number(value: float | None, share: bool = False) -> str:
    """Write a value in four digits, a share in percent: 0.9876 -> 98.8 %."""
    if value is None:
        return NONE
    if share:
        return f"{100 * value:.1f} %"
    return f"{value:.4g}" if abs(value) < 10_000 else f"{value:,.0f}"


def interval(entry: Mapping[str, Any]) -> str:
    """Write a metric's interval: 98.1 to 99.3."""
    if entry["low"] is None or entry["high"] is None:
        return NONE
    low, high = (number(entry[end], entry["share"]).removesuffix(" %") for end in ("low", "high"))
    return f"{low} to {high}"


def label(name: str) -> str:
    """Write a metric's name as words: exact_match -> exact match, bleu -> BLEU."""
    return _SPELLINGS.get(name, name.replace("_", " "))


_SPELLINGS = {
    "bleu": "BLEU",
    "chrf": "chrF",
    "macro_f1": "macro-F1",
    "micro_f1": "micro-F1",
    "span_f1": "span F1",
    "mae": "MAE",
    "mse": "MSE",
    "mase": "MASE",
    "smape": "sMAPE",
    "spearman": "Spearman",
    "frame_nll": "frame NLL",
    "rouge_1": "ROUGE-1",
    "rouge_2": "ROUGE-2",
    "rouge_l": "ROUGE-L",
}


def arrow(entry: Mapping[str, Any]) -> str:
    """Say which way is better: ↑ or ↓."""
    return "↑" if entry["better"] == "higher" else "↓"


def span(bucket: Mapping[str, Any]) -> str:
    """Write a bucket's lengths: 4–7, or 5."""
    low, high = bucket["shortest"], bucket["longest"]
    return f"{low}–{high}" if low != high else f"{low}"


def metric_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return a row a metric: name and direction, value, interval."""
    return [
        [f"{label(name)} {arrow(entry)}", number(entry["value"], entry["share"]), interval(entry)]
        for name, entry in summary["metrics"].items()
    ]


def baseline(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return what a classifier must beat: training's most frequent label, told always."""
    told = summary.get("baseline")
    if not told:
        return []
    return [(f"most frequent label ({told['label']})", f"accuracy {number(told['accuracy'], share=True)}")]


def length_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Return a row a length bucket: lengths, items, each metric's value."""
    return [
        [
            span(bucket),
            f"{bucket['items']:,}",
            *(number(entry["value"], entry["share"]) for entry in bucket["metrics"].values()),
        ]
        for bucket in summary["by_length"]
    ]


def signatures(summary: Mapping[str, Any]) -> dict[str, str]:
    """Return the metrics that say how exactly they count."""
    found = {label(name): entry["signature"] for name, entry in summary["metrics"].items()}
    return {name: signature for name, signature in found.items() if signature}


def render_table(summary: Mapping[str, Any]) -> str:
    """Write a summary as text: metrics with intervals, quality by length, signatures."""
    parts = [f"{summary['items']:,} items"]
    parts.append(align([["metric", "value", "95 % interval"], *metric_rows(summary)]))
    parts.extend(f"{name}: {accuracy}" for name, accuracy in baseline(summary))
    if summary["by_length"]:
        header = [summary["unit"], "items", *(label(name) for name in summary["metrics"])]
        parts.append(align([header, *length_rows(summary)]))
    parts.extend(f"{name} signature: {text}" for name, text in signatures(summary).items())
    return "\n\n".join(parts) + "\n"


def align(rows: Sequence[Sequence[str]]) -> str:
    """Align rows of cells: the first to the left, the others to the right, with a rule below the header."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    return "\n".join([lines[0], "  ".join("─" * width for width in widths), *lines[1:]])
