"""Figures hold what they should, where it can be read."""

from itertools import pairwise

import numpy as np
import pytest

from weft.core.errors import InputError
from weft.reporting import (
    alignment,
    confusion_matrix,
    learning_curve,
    length_histogram,
    png,
    quality_by_length,
)
from weft.reporting.figures import CELL, points, spread, visible

HISTORY = [
    {"step": 10, "split": "train", "loss": 4.0},
    {"step": 20, "split": "train", "loss": 2.0},
    {"step": 20, "split": "valid", "loss": 3.0, "accuracy": 0.5},
    {"step": 30, "split": "train", "loss": None},
    {"step": 40, "split": "valid", "loss": 2.5, "accuracy": 0.75},
]


def texts(figure):
    return [text.get_text() for text in figure.axes[0].texts]


def ticks(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_points_are_those_of_one_split_without_gaps():
    assert points(HISTORY, "train", "loss").tolist() == [[10, 4], [20, 2]]
    assert points(HISTORY, "valid", "accuracy").tolist() == [[20, 0.5], [40, 0.75]]
    assert points([], "train", "loss").shape == (0, 2)


def test_a_learning_curve_has_a_line_for_training_and_one_for_validation():
    figure = learning_curve({"lstm": HISTORY})
    lines = [line.get_xydata().tolist() for line in figure.axes[0].lines]
    assert lines == [[[10, 4], [20, 2]], [[20, 3], [40, 2.5]]]
    assert texts(figure) == ["training", "validation"]
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("training steps", "loss")


def test_several_runs_are_named_at_their_lines_in_their_colours():
    figure = learning_curve({"lstm": HISTORY, "a $5 run_1": HISTORY[:2]})
    assert texts(figure) == ["lstm", "a $5 run_1"]
    colours = [text.get_color() for text in figure.axes[0].texts]
    assert colours == [figure.axes[0].lines[0].get_color(), figure.axes[0].lines[2].get_color()]


def test_a_loss_that_falls_far_is_logarithmic():
    far = [{"step": i, "split": "train", "loss": 10.0**-i} for i in range(4)]
    assert learning_curve({"x": far}).axes[0].get_yscale() == "log"
    assert learning_curve({"x": HISTORY}).axes[0].get_yscale() == "linear"


def test_a_share_is_read_in_percent():
    axes = learning_curve({"x": HISTORY}, "accuracy", share=True).axes[0]
    assert axes.yaxis.get_major_formatter()(0.75) == "75 %"


@pytest.mark.parametrize("history", [[], HISTORY[:1]])
def test_short_histories_are_drawn(history):
    assert png(learning_curve({"x": history}))[:4] == b"\x89PNG"


@pytest.mark.parametrize(
    ("heights", "expected"),
    [
        ([0.5], [0.5]),
        ([0.2, 0.8], [0.2, 0.8]),
        ([0.5, 0.5, 0.5], [0.5, 0.6, 0.7]),
        ([0.97, 0.2, 0.96], [0.97, 0.2, 0.87]),
    ],
)
def test_labels_keep_their_order_and_distance(heights, expected):
    assert spread(np.array(heights), 0.1) == pytest.approx(expected)


def bucket(shortest, longest, value):
    entry = {"value": value, "low": value - 0.1, "high": value + 0.05}
    return {"shortest": shortest, "longest": longest, "items": 9, "metrics": {"accuracy": entry}}


def test_quality_by_length_shows_value_interval_and_count():
    buckets = [bucket(1, 4, 0.5), bucket(5, 5, 0.75)]
    figure = quality_by_length({"lstm": buckets, "gru": buckets}, "accuracy", "words", share=True)
    axes = figure.axes[0]
    assert ticks(axes.xaxis) == ["1–4\n9", "5\n9"]
    assert axes.get_xlabel() == "source length in words, below it the items"
    assert axes.lines[0].get_ydata().tolist() == [0.5, 0.75]
    whiskers = axes.collections[0].get_segments()
    assert [segment[:, 1].tolist() for segment in whiskers] == [
        pytest.approx([0.4, 0.55]),
        pytest.approx([0.65, 0.8]),
    ]
    assert texts(figure) == ["lstm", "gru"]


def test_counts_below_lengths_do_not_meet_where_names_take_room():
    buckets = [bucket(10 * i, 10 * i + 9, 0.5) | {"items": 12_345} for i in range(1, 6)]
    figure = quality_by_length({"LSTM + additive attention": buckets, "gru": buckets}, "accuracy")
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in figure.axes[0].get_xticklabels()]
    assert all(left.x1 < right.x0 for left, right in pairwise(boxes))


def test_an_alignment_shows_every_token_at_readable_size():
    weights = np.eye(3, 40)
    figure = alignment(weights, ["a", " ", "$"] + ["x"] * 37, ["1", "2", "3"], truth=[(0, 0), (1, 1)])
    axes = figure.axes[0]
    assert ticks(axes.xaxis)[:3] == ["a", "␣", "$"]
    assert ticks(axes.yaxis) == ["1", "2", "3"]
    assert figure.get_size_inches()[0] >= 40 * CELL
    assert {label.get_fontsize() for label in axes.get_xticklabels()} == {9}
    assert [patch.get_xy() for patch in axes.patches] == [(-0.5, -0.5), (0.5, 0.5)]
    assert np.array_equal(axes.images[0].get_array(), weights)


def test_long_tokens_stand_on_end():
    figure = alignment(np.eye(2), ["schlafen", "ein"], ["to", "sleep"])
    assert {label.get_rotation() for label in figure.axes[0].get_xticklabels()} == {90}


def test_weights_the_wrong_way_round_are_refused():
    with pytest.raises(InputError, match=r"\(target, source\) = \(2, 3\), but has \(3, 2\)"):
        alignment(np.zeros((3, 2)), ["a", "b", "c"], ["d", "e"])


def test_the_confusion_matrix_shades_shares_and_writes_counts():
    figure = confusion_matrix(np.array([[3, 1], [0, 12_345]]), ["cat", "dog"])
    assert figure.axes[0].images[0].get_array().tolist() == [[0.75, 0.25], [0, 1]]
    assert texts(figure) == ["3", "1", "12.3k"]
    assert (figure.axes[0].get_xlabel(), figure.axes[0].get_ylabel()) == ("predicted", "true")


def test_the_length_histogram_draws_the_counts():
    axes = length_histogram([1, 3, 5], [4, 2], "words").axes[0]
    assert [(bar.get_x(), bar.get_height()) for bar in axes.patches] == [(1, 4), (3, 2)]


def test_blanks_are_seen():
    assert [visible(token) for token in ("a b", "▁a", "\n", "", "ü")] == ["a␣b", "␣a", "↵", "∅", "ü"]


def test_the_same_figure_gives_the_same_bytes():
    first, second = (png(alignment(np.eye(2), ["a", "b"], ["c", "日"])) for _ in range(2))
    assert first == second
