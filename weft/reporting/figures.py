"""Figures, drawn without a screen: legible at the size they are shown, colours safe for the colour-blind."""

from __future__ import annotations

import io
import warnings
from collections.abc import Mapping, Sequence
from functools import cache
from itertools import cycle
from typing import Any

import numpy as np
from matplotlib import font_manager
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy import ndarray

from weft.core.errors import InputError
from weft.evaluation.table import label, span

# The colours of Okabe and Ito, told apart in every common form of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "osD^vPX"
INK, FAINT = "#333333", "#D9D9D9"
SHADES = "Blues"
CELL = 0.24  # inches of one token in a heat map: room for a character of 9 points
DOTS = 192  # per inch, twice what most screens show
HIGHEST = 0.97  # of the axes' height, for labels at its right
LOG_FROM = 30  # a loss that falls by this factor is shown on a logarithmic axis

History = Sequence[Mapping[str, Any]]  # the rows of metrics.jsonl


def png(figure: Figure) -> bytes:
    """Draw a figure as PNG; the same figure gives the same bytes."""
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph")  # a script no installed font knows shows as boxes
        figure.savefig(buffer, format="png", dpi=DOTS, metadata={"Software": None})
    return buffer.getvalue()


def learning_curve(histories: Mapping[str, History], metric: str = "loss", share: bool = False) -> Figure:
    """Draw a metric over the steps of every run: a thin line in training, dots in validation."""
    figure, axes = _axes()
    ends = []
    for (name, rows), colour, marker in zip(histories.items(), cycle(COLOURS), cycle(MARKERS), strict=False):
        trained, validated = points(rows, "train", metric), points(rows, "valid", metric)
        axes.plot(*trained.T, color=colour, alpha=0.5, linewidth=1)
        axes.plot(*validated.T, color=colour, marker=marker, markersize=3.5, linewidth=1.5)
        texts = ("training", "validation") if len(histories) == 1 else ("", name)
        ends += _ends(trained, validated, texts, colour)
    axes.set_xlabel("training steps")
    axes.set_xlim(left=0)
    axes.set_ylabel(label(metric) + (", log scale" if _use_log(axes, metric) else ""))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:,.0f}"))
    _percent(axes, share)
    _label_right(axes, ends)
    return figure


def points(rows: History, split: str, metric: str) -> ndarray:
    """Return (steps, values) of a metric as an array (n, 2); values that are no number are left out."""
    found = [
        (row["step"], row[metric])
        for row in rows
        if row.get("split") == split and row.get(metric) is not None
    ]
    return np.array(found, dtype=np.float64).reshape(-1, 2)


def quality_by_length(
    buckets: Mapping[str, Sequence[Mapping[str, Any]]], metric: str, unit: str = "tokens", share: bool = False
) -> Figure:
    """Draw a metric with its interval in each length bucket, for every run side by side."""
    figure, axes = _axes()
    ends, count = [], len(buckets)
    for i, (name, runs_buckets) in enumerate(buckets.items()):
        colour, marker = COLOURS[i % len(COLOURS)], MARKERS[i % len(MARKERS)]
        value, low, high = _values(runs_buckets, metric)
        at = np.arange(len(value)) + (i - (count - 1) / 2) * min(0.16, 0.6 / count)
        whiskers = np.maximum([value - low, high - value], 0)
        axes.errorbar(at, value, whiskers, color=colour, marker=marker, markersize=5, linestyle="", capsize=3)
        ends.append((value[-1], name if count > 1 else "", colour))
    first = next(iter(buckets.values()))
    axes.set_xticks(range(len(first)), [f"{span(b)}\n{b['items']:,}" for b in first])
    axes.set_xlabel(f"source length in {unit}, below it the items")  # names at the right leave little room
    axes.set_ylabel(f"{label(metric)}, 95 % interval")
    _percent(axes, share)
    _label_right(axes, ends)
    return figure


def alignment(
    weights: ndarray,
    source: Sequence[str],
    target: Sequence[str],
    title: str = "",
    truth: Sequence[tuple[int, int]] = (),
) -> Figure:
    """Draw attention weights (target, source) as a heat map; outline the pairs of the same in `truth`."""
    weights = np.asarray(weights, dtype=np.float64)
    if weights.shape != (len(target), len(source)):
        raise InputError(
            f"`weights` must have the shape (target, source) = {(len(target), len(source))}, "
            f"but has {weights.shape}."
        )
    wide, tall = _longest(source), _longest(target)
    upright = wide <= 2  # characters; longer tokens stand on end
    margin = (0.5 + 0.09 * tall, 0.75 + (0.1 if upright else 0.09 * wide))
    figure, axes = _heat_axes(weights.shape, margin)
    image = axes.imshow(weights, cmap=SHADES, vmin=0, vmax=max(weights.max(initial=0), 1e-9), aspect="equal")
    for row, column in truth:
        axes.add_patch(
            Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor=COLOURS[1], linewidth=1.5)
        )
    _token_ticks(axes, source, target, rotation=0 if upright else 90)
    axes.set_xlabel("source")
    axes.xaxis.set_label_position("top")
    axes.set_ylabel("output")
    axes.set_title(title, fontsize=10, loc="left", parse_math=False)
    bar = figure.colorbar(image, ax=axes, pad=0.02, fraction=0.08, aspect=25, shrink=0.9)
    bar.set_label("attention weight", fontsize=9)
    bar.ax.tick_params(labelsize=8)
    bar.ax.spines["outline"].set_visible(False)
    return figure


def confusion_matrix(counts: ndarray, labels: Sequence[str]) -> Figure:
    """Draw a confusion matrix: each row is a true label, shaded by its share, the counts written in."""
    counts = np.asarray(counts)
    shares = counts / np.maximum(counts.sum(1, keepdims=True), 1)
    longest = _longest(labels)
    figure, axes = _heat_axes(counts.shape, (0.6 + 0.09 * longest, 0.6 + 0.09 * longest), cell=0.36, bar=0.1)
    axes.imshow(shares, cmap=SHADES, vmin=0, vmax=1, aspect="equal")
    for row, column in np.argwhere(counts > 0):
        shade = "white" if shares[row, column] > 0.55 else INK
        axes.text(
            column, row, _short(int(counts[row, column])), ha="center", va="center", fontsize=7, color=shade
        )
    _token_ticks(axes, labels, labels, rotation=90)
    axes.set_xlabel("predicted")
    axes.xaxis.set_label_position("top")
    axes.set_ylabel("true")
    return figure


def length_histogram(edges: Sequence[int], counts: Sequence[int], unit: str = "tokens") -> Figure:
    """Draw how many items have which source length."""
    figure, axes = _axes(height=2.6)
    axes.bar(edges[:-1], counts, width=np.diff(edges) * 0.92, align="edge", color=COLOURS[0])
    axes.set_xlabel(f"source length in {unit}")
    axes.set_ylabel("items")
    axes.xaxis.set_major_locator(MaxNLocator(8, integer=True))
    axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
    return figure


@cache
def fonts() -> list[str]:
    """Return the fonts to draw with: later ones stand in for characters the first lacks."""
    wanted = (
        "DejaVu Sans",
        "Noto Sans CJK JP",
        "Noto Sans CJK SC",
        "Hiragino Sans",
        "PingFang SC",
        "Noto Sans",
    )
    known = set(font_manager.get_font_names())
    return [name for name in wanted if name in known]


def visible(token: str) -> str:
    """Write a token so that blanks and control characters are seen."""
    return "".join(_SIGNS.get(character, character) for character in token) or "∅"


# ▁ is how subwords write the blank before a word
_SIGNS = {" ": "␣", "▁": "␣", "\n": "↵", "\t": "⇥", "\r": "␍", "\u00a0": "⍽"}


def _axes(width: float = 4.8, height: float = 3.1) -> tuple[Figure, Axes]:
    """Return an empty figure with light axes."""
    figure = Figure(figsize=(width, height), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(axis="y", color=FAINT, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(colors=INK, labelsize=9)
    return figure, axes


def _heat_axes(
    shape: tuple[int, ...], margin: tuple[float, float], cell: float = CELL, bar: float = 0.9
) -> tuple[Figure, Axes]:
    """Return axes for rows x columns cells, as large as the cells need, ticks on top."""
    rows, columns = shape
    width, height = columns * cell + margin[0] + bar, rows * cell + margin[1] + 0.2
    figure = Figure(figsize=(max(width, 2.5), max(height, 1.6)), layout="constrained", facecolor="white")
    axes = figure.add_subplot()
    axes.spines[:].set_visible(False)
    axes.xaxis.tick_top()
    axes.tick_params(length=0, colors=INK)
    return figure, axes


def _token_ticks(axes: Axes, across: Sequence[str], down: Sequence[str], rotation: int) -> None:
    style: dict[str, Any] = {"fontsize": 9, "fontfamily": fonts(), "parse_math": False}
    axes.set_xticks(range(len(across)), [visible(token) for token in across], rotation=rotation, **style)
    axes.set_yticks(range(len(down)), [visible(token) for token in down], **style)


def _ends(
    trained: ndarray, validated: ndarray, texts: tuple[str, str], colour: str
) -> list[tuple[float, str, str]]:
    """Return (height, text, colour) of the labels of one run's lines."""
    lines = [(trained, texts[0]), (validated, texts[1])]
    if len(validated) == 0:
        lines = [(trained, texts[0] or texts[1])]
    return [(line[-1, 1], text, colour) for line, text in lines if len(line) and text]


def _label_right(axes: Axes, ends: Sequence[tuple[float, str, str]]) -> None:
    """Write each line's name to the right of the axes, at the height it ends, none on another."""
    ends = [end for end in ends if end[1] and np.isfinite(end[0])]
    axes.autoscale_view()
    to_axes = axes.transData + axes.transAxes.inverted()
    heights = np.array([to_axes.transform((axes.get_xlim()[0], value))[1] for value, _, _ in ends])
    for at, (_, text, colour) in zip(spread(heights, gap=0.075), ends, strict=True):
        axes.text(
            1.02, at, text, color=colour, fontsize=9, va="center", transform=axes.transAxes,
            fontfamily=fonts(), parse_math=False,
        )  # fmt: skip


def spread(heights: ndarray, gap: float) -> ndarray:
    """Move heights apart to at least `gap`, in their order, none above the axes if they fit."""
    order = np.argsort(heights, kind="stable")
    placed = heights[order]
    for i in range(1, len(placed)):
        placed[i] = max(placed[i], placed[i - 1] + gap)
    ceilings = HIGHEST - gap * np.arange(len(placed))[::-1]
    result = np.empty_like(placed)
    result[order] = np.minimum(placed, ceilings)
    return result


def _values(buckets: Sequence[Mapping[str, Any]], metric: str) -> tuple[ndarray, ndarray, ndarray]:
    entries = [bucket["metrics"][metric] for bucket in buckets]
    numbers = [[entry[key] for key in ("value", "low", "high")] for entry in entries]
    value, low, high = np.array(numbers, dtype=np.float64).T
    return value, low, high


def _use_log(axes: Axes, metric: str) -> bool:
    """Switch a loss to a logarithmic axis when it falls by a large factor."""
    values = np.concatenate([line.get_ydata() for line in axes.lines] or [np.ones(1)])
    wide = (
        metric == "loss" and len(values) > 0 and values.min() > 0 and values.max() / values.min() > LOG_FROM
    )
    if wide:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:g}"))
    return bool(wide)


def _percent(axes: Axes, share: bool) -> None:
    if share:
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{100 * y:.4g} %"))


def _longest(tokens: Sequence[str]) -> int:
    return max(map(len, tokens), default=1)


def _short(count: int) -> str:
    """Write a count in at most four characters: 1234 -> 1.2k."""
    return f"{count}" if count < 1000 else f"{count / 1000:.3g}k"
