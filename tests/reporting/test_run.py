"""The report of one run."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest

from weft.core.errors import InputError
from weft.evaluation import EVALUATION, write_evaluation
from weft.metrics import Evaluation, accuracy, confusion
from weft.reporting import Alignment, write_run_report

ROWS = [
    {"step": 50, "split": "train", "loss": 1.5, "tokens": 1000, "seconds": 2.0},
    {"step": 100, "split": "train", "loss": 1.0, "tokens": 2000, "seconds": 4.0},
    {"step": 100, "split": "valid", "loss": 1.1, "accuracy": 0.5, "seconds": 4.5},
]
PREDICTED, TRUE = np.array([0, 1, 1, 0] * 10), np.array([0, 1, 0, 0] * 10)
EVALUATED = Evaluation(
    {"accuracy": accuracy(PREDICTED, TRUE)},
    np.arange(40),
    ["cat" if i == 0 else "dog" for i in PREDICTED],
    ["cat" if i == 0 else "dog" for i in TRUE],
    {
        "labels": ["cat", "dog"],
        "confusion": confusion(PREDICTED, TRUE, 2),
        "baseline": {"label": "cat", "accuracy": 0.7},
    },
)


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "config.yaml").write_text("task: classify\nmodel:\n  family: lstm\n")
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return tmp_path


def read(path):
    return re.sub(r"base64,[^\"]+", "", path.read_text("utf-8"))


def headings(text):
    return re.findall("<h2>(.*?)</h2>", text)


def test_a_report_right_after_training(folder):
    path = write_run_report(folder, parameters=4321)
    text = read(path)
    assert path == folder / "report.html"
    assert headings(text) == ["Learning curves", "Configuration"]
    for part in ("4,321", "4.5 s", "444 targets/s", "<td>100</td>", "family: lstm"):
        assert part in text


def test_a_report_with_an_evaluation_given(folder):
    look = Alignment(np.eye(1), ["a"], ["b"])
    text = read(write_run_report(folder, [look], EVALUATED))
    assert headings(text) == [
        "Learning curves", "Alignments", "Quality by length", "Confusion", "Examples", "Configuration",
    ]  # fmt: skip
    assert "75.0 %" in text
    assert "40 items" in text
    assert "<td>most frequent label (cat)</td><td>accuracy 70.0 %</td>" in text


def test_the_evaluation_of_the_folder_is_used(folder):
    write_evaluation(folder / EVALUATION, EVALUATED)
    assert read(write_run_report(folder)) == read(write_run_report(folder, evaluation=EVALUATED))


def test_numbers_are_shown_unjudged(folder):
    told = replace(EVALUATED, predictions=["62.9"] * 40, references=["66.5"] * 40, exact=False)
    text = read(write_run_report(folder, evaluation=told))
    assert "<td>66.5</td><td>62.9</td>" in text
    assert "The first items of the file.<" in text


def test_an_untrained_run_has_a_report_too(folder):
    (folder / "metrics.jsonl").unlink()
    assert "no step recorded yet" in read(write_run_report(folder))


def test_a_folder_that_is_no_run_is_refused(tmp_path):
    with pytest.raises(InputError, match=r"holds a config\.yaml"):
        write_run_report(tmp_path)
