"""ROUGE against the rouge_score package."""

import random

import pytest
from rouge_score.rouge_scorer import RougeScorer

from weft.metrics import rouge_1, rouge_2, rouge_l
from weft.metrics.rouge import longest_common_subsequence, words

TEXTS = [
    ("The quick brown fox jumps over the lazy dog", "The quick brown dog jumps on the log."),
    ("a a a b", "a b b a"),
    ("", "something"),
    ("!!!", "???"),
    ("It's 3.5 o'clock", "its 3.5 O'Clock"),
    ("größer als", "grosser als"),
]


def random_texts():
    chance = random.Random(0)
    return [
        tuple(
            " ".join(chance.choices(["red", "Green", "blue-ish", "x"], k=chance.randrange(9))) for _ in "pr"
        )
        for _ in range(60)
    ]


@pytest.mark.parametrize(("kind", "measure"), [("rouge1", rouge_1), ("rouge2", rouge_2), ("rougeL", rouge_l)])
def test_rouge_is_that_of_the_package(kind, measure):
    scorer = RougeScorer([kind], use_stemmer=False)
    scores = []
    for prediction, reference in TEXTS + random_texts():
        scores.append(scorer.score(reference, prediction)[kind].fmeasure)
        assert measure([prediction], [reference]).value == pytest.approx(scores[-1], abs=1e-12)
    predictions, references = zip(*TEXTS, *random_texts(), strict=True)
    assert measure(list(predictions), list(references)).value == pytest.approx(sum(scores) / len(scores))


def test_the_longest_common_subsequence_by_hand():
    assert longest_common_subsequence("ABCBDAB", "BDCABA") == 4
    assert longest_common_subsequence("", "ab") == longest_common_subsequence("ab", "") == 0


def test_words_are_lower_case_letters_and_digits():
    assert words("It's 3.5 O'Clock") == ["it", "s", "3", "5", "o", "clock"]
