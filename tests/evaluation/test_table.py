"""Numbers and tables as text."""

import numpy as np
import pytest

from weft.evaluation import render_table, summarise
from weft.evaluation.table import interval, label, number
from weft.metrics import Evaluation, accuracy, bleu, exact_match


@pytest.mark.parametrize(
    ("value", "share", "text"),
    [
        (0.98765, True, "98.8 %"),
        (0.98765, False, "0.9877"),
        (28.4349, False, "28.43"),
        (123456.7, False, "123,457"),
        (1e-5, False, "1e-05"),
        (None, True, "–"),
    ],
)
def test_numbers_have_four_digits(value, share, text):
    assert number(value, share) == text


def test_an_interval_names_the_unit_once():
    assert interval({"low": 0.981, "high": 0.993, "share": True}) == "98.1 to 99.3"
    assert interval({"low": None, "high": None, "share": False}) == "–"


def test_names_are_spelled_as_people_do():
    assert [label(name) for name in ("exact_match", "bleu", "rouge_l")] == ["exact match", "BLEU", "ROUGE-L"]


def test_the_table_reads_at_a_glance():
    words = ["a b c d", "b c d e"] * 4
    evaluation = Evaluation(
        {"exact_match": exact_match(words, words), "bleu": bleu(words, words)}, np.array([3, 5] * 4)
    )
    text = render_table(summarise(evaluation))
    lines = text.splitlines()
    assert lines[0] == "8 items"
    assert lines[2:6] == [
        "metric           value   95 % interval",
        "─────────────  ───────  ──────────────",
        "exact match ↑  100.0 %  100.0 to 100.0",
        "BLEU ↑             100      100 to 100",
    ]
    assert "tokens  items  exact match  BLEU" in lines
    assert lines[-1].startswith("BLEU signature: nrefs:1")


def test_what_a_classifier_must_beat_stands_below_its_scores():
    told = {"baseline": {"label": "Russian", "accuracy": 0.519}}
    evaluation = Evaluation({"accuracy": accuracy([0, 1], [0, 0])}, np.array([3, 5]), extra=told)
    summary = summarise(evaluation)
    assert summary["baseline"] == told["baseline"]
    assert "\n\nmost frequent label (Russian): accuracy 51.9 %\n\n" in render_table(summary)
