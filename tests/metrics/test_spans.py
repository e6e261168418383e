"""Spans and their F1 against hand-worked cases and a second reader."""

import random
import re

import pytest

from weft.metrics import span_f1, spans


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("", set()),
        ("O O", set()),
        ("B-PER I-PER O B-LOC", {("PER", 0, 2), ("LOC", 3, 4)}),
        ("B-PER B-PER", {("PER", 0, 1), ("PER", 1, 2)}),
        ("B-PER I-LOC I-LOC", {("PER", 0, 1), ("LOC", 1, 3)}),
        ("O I-PER I-PER O", {("PER", 1, 3)}),
        ("B I O B", {("", 0, 2), ("", 3, 4)}),
        ("B-a-b I-a-b", {("a-b", 0, 2)}),
        ("B-X I-X E-X S-Y O B-Y E-Y", {("X", 0, 3), ("Y", 3, 4), ("Y", 5, 7)}),
        ("S-X S-X E-X I-X", {("X", 0, 1), ("X", 1, 2), ("X", 2, 3), ("X", 3, 4)}),
        ("B-X L-X U-X B-X E-Y", {("X", 0, 2), ("X", 2, 3), ("X", 3, 4), ("Y", 4, 5)}),
    ],
)
def test_spans_are_read_as_the_conll_scorer_reads_them(tags, expected):
    assert spans(tags.split()) == expected


def test_spans_agree_with_a_regular_expression():
    chance = random.Random(0)
    for _ in range(300):
        tags = [chance.choice(["O", "B-x", "I-x", "B-y", "I-y"]) for _ in range(chance.randrange(12))]
        letters = "".join({"O": "o", "B-x": "X", "I-x": "x", "B-y": "Y", "I-y": "y"}[tag] for tag in tags)
        found = re.finditer("[Xx]x*|[Yy]y*", letters)
        assert spans(tags) == {(match[0][0].lower(), *match.span()) for match in found}


def test_span_f1_wants_type_and_both_ends():
    true = [["B-PER", "I-PER", "O", "B-LOC"], ["O", "B-ORG"]]
    predicted = [["B-PER", "O", "O", "B-LOC"], ["B-ORG", "B-ORG"]]
    measured = span_f1(predicted, true)  # hits: LOC and one ORG; predicted 4, true 3
    assert measured.value == pytest.approx(2 * 2 / (4 + 3))


def test_no_spans_anywhere_score_nothing():
    assert span_f1([["O"]], [["O"]]).value == 0
