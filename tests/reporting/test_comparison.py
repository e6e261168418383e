"""The page that compares runs."""

import re

import numpy as np
import pytest

from weft.core.errors import InputError
from weft.evaluation import summarise
from weft.metrics import Evaluation, exact_match, loss
from weft.reporting import Alignment, Entry, write_comparison_report
from weft.reporting.comparison import verdict

TRUE = [f"t{i}" for i in range(60)]


def evaluation(wrong):
    guesses = [f"<{text}>" if i in wrong else text for i, text in enumerate(TRUE)]
    misses = [float(i in wrong) for i in range(60)]
    return Evaluation(
        {
            "exact_match": exact_match(guesses, TRUE),
            "loss": loss(misses, np.ones(60)),
        },
        np.arange(60) + 1,
        guesses,
        TRUE,
        sources=[f"source & {i}" for i in range(60)],
        unit="characters",
    )


def entry(name, wrong, **more):
    history = [
        {"step": 10, "split": "train", "loss": 2.0, "seconds": 1.0},
        {"step": 10, "split": "valid", "loss": 2.0, "exact_match": 0.5, "seconds": 1.0},
    ]
    look = Alignment(np.eye(2), ["a", "b"], ["c", "d"], "first", [(0, 0)])
    return Entry(name, 12_345, evaluation(wrong), history, 75.0, {"targets/s": 12_345.0}, [look], **more)


@pytest.fixture(scope="module")
def text(tmp_path_factory):
    path = tmp_path_factory.mktemp("report") / "report.html"
    entries = [entry("lstm", {1, 20, 30, 40}), entry("transformer", {50})]
    assert (
        write_comparison_report(path, entries, "Two models", "What was done.", {"data": "60 items"}) == path
    )
    return re.sub(r"base64,[^\"]+", "", path.read_text("utf-8"))


def test_the_summary_comes_first_and_holds_size_quality_time_and_speed(text):
    head = text[: text.index("Learning curves")]
    for part in (
        "12,345",
        "93.3 %",
        "<strong>98.3 %</strong>",
        "1 min 15 s",
        "12,300",
        "exact match\u00a0↑",
        "targets/s",
    ):
        assert part in head
    assert text.index("What was done.") < text.index("<table")


def test_every_section_is_there(text):
    assert re.findall("<h2>(.*?)</h2>", text) == [
        "Learning curves", "Alignments", "Examples", "Quality by length", "How it was made",
    ]  # fmt: skip
    assert text.count("<img") == 2 + 2 + 2


def test_examples_are_the_first_items_and_those_some_model_gets_wrong(text):
    assert re.findall(r"source &amp; (\d+)", text) == ["0", "1", "2", "3", "4", "5", "20", "30", "40", "50"]
    assert "✗ <mark>&lt;</mark>t20<mark>&gt;</mark>" in text


def test_the_verdict_names_the_best_and_says_whether_intervals_part():
    def said(**wrong):
        return verdict({name: summarise(evaluation(items)) for name, items in wrong.items()})

    assert said(a=range(30), b=[]) == (
        "By exact match, b comes first with 100.0 %, then a with 50.0 %; their intervals do not overlap."
    )
    assert said(a=[1], b=[1, 2]).endswith("their intervals overlap.")
    assert said(a=[1], b=[2]) == "By exact match, a and b are equal: 98.3 %."
    assert said(a=[1]) == ""


def test_runs_that_cannot_be_compared_are_refused(tmp_path):
    short = Entry("short", 1, Evaluation({"m": exact_match("a", "a")}, np.array([1])))
    with pytest.raises(InputError, match=r"the same items, but got lstm \(60 items\), short \(1 items\)"):
        write_comparison_report(tmp_path / "x.html", [entry("lstm", []), short])
    with pytest.raises(InputError, match="different names"):
        write_comparison_report(tmp_path / "x.html", [entry("lstm", []), entry("lstm", [])])
    with pytest.raises(InputError, match="but got none"):
        write_comparison_report(tmp_path / "x.html", [])
