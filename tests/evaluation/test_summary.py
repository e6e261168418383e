"""An evaluation as plain data."""

import json
from dataclasses import replace

import numpy as np
import pytest

from weft.core.errors import ArtefactError
from weft.evaluation import read_evaluation, summarise, write_evaluation
from weft.metrics import Evaluation, accuracy, bleu, confusion, exact_match, perplexity

WORDS = ["eins", "zwei", "drei", "vier"] * 10
GUESSES = ["eins", "zwei", "drei", "acht"] * 10


def translation():
    return Evaluation(
        {"exact_match": exact_match(GUESSES, WORDS), "bleu": bleu(GUESSES, WORDS)},
        np.arange(40) % 10 + 1,
        GUESSES,
        WORDS,
        sources=[str(i) for i in range(40)],
    )


def test_a_metric_has_value_interval_direction_and_signature():
    summary = summarise(translation())
    entry = summary["metrics"]["exact_match"]
    assert (summary["items"], entry["value"], entry["better"], entry["share"]) == (40, 0.75, "higher", True)
    assert 0.55 < entry["low"] < 0.75 < entry["high"] < 0.92
    assert summary["metrics"]["bleu"]["signature"].startswith("nrefs:1|case:mixed")


def test_buckets_add_up_to_the_whole():
    buckets = summarise(translation())["by_length"]
    assert [(b["shortest"], b["longest"], b["items"]) for b in buckets] == [
        (1, 2, 8), (3, 4, 8), (5, 6, 8), (7, 8, 8), (9, 10, 8),
    ]  # fmt: skip
    hits = sum(b["metrics"]["exact_match"]["value"] * b["items"] for b in buckets)
    assert hits == pytest.approx(0.75 * 40)


def test_equal_lengths_have_no_buckets():
    evaluation = Evaluation({"accuracy": accuracy([0, 1], [0, 0])}, np.array([5, 5]))
    assert summarise(evaluation)["by_length"] == []


def test_the_length_histogram_counts_every_item():
    histogram = summarise(translation())["lengths"]
    assert histogram == {"edges": list(range(1, 12)), "counts": [4] * 10}
    wide = Evaluation({"accuracy": accuracy([0, 0, 0], [0, 0, 0])}, np.array([1, 5000, 9999]))
    histogram = summarise(wide)["lengths"]
    assert sum(histogram["counts"]) == 3
    assert len(histogram["counts"]) <= 30


def test_examples_are_the_first_items_and_the_first_wrong_ones():
    examples = summarise(translation())["examples"]
    assert [e["source"] for e in examples[:9]] == ["0", "1", "2", "3", "4", "5", "6", "7", "11"]
    assert [e["right"] for e in examples[:4]] == [True, True, True, False]
    assert not any(e["right"] for e in examples[8:])
    assert len(examples) == 16


def test_numbers_are_neither_right_nor_wrong():
    examples = summarise(replace(translation(), exact=False))["examples"]
    assert [e["source"] for e in examples] == [str(i) for i in range(8)]
    assert not any("right" in e for e in examples)


def test_a_classifier_keeps_its_confusion():
    predicted, true = np.array([0, 1, 1]), np.array([0, 1, 0])
    extra = {"labels": ["cat", "dog"], "confusion": confusion(predicted, true, 2)}
    summary = summarise(Evaluation({"accuracy": accuracy(predicted, true)}, np.array([1, 2, 3]), extra=extra))
    assert (summary["labels"], summary["confusion"]) == (["cat", "dog"], [[1, 1], [0, 1]])


def test_what_is_written_is_read_back(tmp_path):
    path = tmp_path / "evaluation.json"
    summary = write_evaluation(path, translation(), {"run": "runs/x"})
    assert read_evaluation(path) == summary
    assert next(iter(summary)) == "about"
    assert [p.name for p in tmp_path.iterdir()] == ["evaluation.json"]


def test_no_number_is_written_as_null(tmp_path):
    path = tmp_path / "evaluation.json"
    write_evaluation(path, Evaluation({"perplexity": perplexity([1e9], [1])}, np.array([1])))
    assert json.loads(path.read_text())["metrics"]["perplexity"]["value"] is None


@pytest.mark.parametrize("text", ["{", "[]", "{}", None])
def test_a_damaged_file_is_refused(tmp_path, text):
    path = tmp_path / "evaluation.json"
    if text is not None:
        path.write_text(text)
    with pytest.raises(ArtefactError, match="Evaluate the run again"):
        read_evaluation(path)
