"""The sections that reports share."""

import numpy as np
import pytest

from weft.evaluation import summarise
from weft.metrics import Evaluation, accuracy
from weft.reporting.sections import by_length, differences, judged, judged_by, shortened


@pytest.mark.parametrize(
    ("prediction", "reference", "expected"),
    [
        ("2019-11-13", "2019-11-13", "2019-11-13"),
        ("2009-11-13", "2019-11-13", "20<mark>0</mark>9-11-13"),
        ("201-11-13", "2019-11-13", "201<mark>‸</mark>-11-13"),
        ("a<b", "a<c", "a&lt;<mark>b</mark>"),
        ("", "", ""),
    ],
)
def test_what_differs_is_marked(prediction, reference, expected):
    assert differences(prediction, reference) == expected


def test_long_texts_are_not_compared():
    assert differences("a" * 500, "b") == "a" * 500


def test_without_a_reference_nothing_is_judged():
    assert judged("x", None) == "x"


def test_the_metric_shown_is_the_one_wanted_if_it_was_validated():
    rows = [
        {"step": 1, "split": "train", "loss": 1.0, "lr": 0.1},
        {"step": 1, "split": "valid", "loss": 1.0, "seconds": 2.0, "bleu": 3.0, "chrf": 4.0},
    ]
    assert judged_by({"a": rows}, "chrf") == "chrf"
    assert judged_by({"a": rows}, "exact_match") == "bleu"
    assert judged_by({"a": rows[:1]}, "bleu") is None


def test_items_of_one_length_need_no_picture_of_lengths():
    measured = {"accuracy": accuracy([0, 1], [0, 0])}
    same, other = (summarise(Evaluation(measured, np.array([336, last]))) for last in (336, 337))
    assert by_length({"run": same}) == ""
    assert "Quality by length" in by_length({"run": other})


def test_long_examples_are_cut():
    assert shortened("a" * 1000) == "a" * 1000
    assert shortened("a" * 1001) == "a" * 1000 + "…"
