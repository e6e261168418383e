"""BLEU and chrF against sacreBLEU."""

import random

import pytest
import sacrebleu

from weft.core.errors import ConfigError
from weft.metrics import bleu, chrf, exact_match

TRUE = [
    "Ein Mann schläft in einem grünen Raum auf einem Sofa.",
    "Zwei Männer stehen am Herd und bereiten Essen zu.",
    "Ein Junge spielt im Freien, im Wasser.",
    "Hallo",
    "",
    "(Ja), natürlich!",
]
PREDICTED = [
    "Ein Mann schläft in einem Raum auf einem grünen Sofa.",
    "Zwei Männer stehen am Herd und kochen.",
    "Ein Junge spielt draußen im Wasser.",
    "",
    "etwas",
    "Ja, natürlich!",
]
PART = random.Random(0).choices(range(len(TRUE)), k=4)


def of(items, texts):
    return [texts[i] for i in items]


@pytest.mark.parametrize("items", [range(6), PART, [1, 3], [3], [4]])
def test_bleu_is_sacrebleu(items):
    predicted, true = of(items, PREDICTED), of(items, TRUE)
    scorer = sacrebleu.BLEU()
    measured = bleu(predicted, true)
    assert measured.value == scorer.corpus_score(predicted, [true]).score
    assert measured.metric.signature == str(scorer.get_signature())


@pytest.mark.parametrize("items", [range(6), PART, [1, 3], [3], [4]])
def test_chrf_is_sacrebleu(items):
    predicted, true = of(items, PREDICTED), of(items, TRUE)
    scorer = sacrebleu.CHRF()
    measured = chrf(predicted, true)
    assert measured.value == pytest.approx(scorer.corpus_score(predicted, [true]).score, rel=1e-12)
    assert measured.metric.signature == str(scorer.get_signature())


def test_chrf_agrees_on_random_strings():
    chance = random.Random(1)
    texts = ["".join(chance.choices("abc .", k=chance.randrange(12))) for _ in range(120)]
    predicted, true = texts[:60], texts[60:]
    for p, r in zip(predicted, true, strict=True):
        assert chrf([p], [r]).value == pytest.approx(
            sacrebleu.CHRF().corpus_score([p], [[r]]).score, abs=1e-10
        )
    assert chrf(predicted, true).value == pytest.approx(
        sacrebleu.CHRF().corpus_score(predicted, [true]).score
    )


def test_several_references_an_item():
    others = TRUE[::-1]
    pairs = [list(pair) for pair in zip(TRUE, others, strict=True)]
    assert bleu(PREDICTED, pairs).value == sacrebleu.BLEU().corpus_score(PREDICTED, [TRUE, others]).score
    assert chrf(PREDICTED, pairs).value == pytest.approx(
        sacrebleu.CHRF().corpus_score(PREDICTED, [TRUE, others]).score
    )
    assert "nrefs:2" in bleu(PREDICTED, pairs).metric.signature


def test_a_tokenizer_by_name():
    expected = sacrebleu.BLEU(tokenize="char").corpus_score(PREDICTED, [TRUE]).score
    assert bleu(PREDICTED, TRUE, tokenize="char").value == expected
    with pytest.raises(ConfigError, match=r"no BLEU tokenizer `13`.* Did you mean `13a`\?"):
        bleu(PREDICTED, TRUE, tokenize="13")


def test_the_interval_of_bleu_holds_it():
    measured = bleu(PREDICTED * 20, TRUE * 20)
    low, high = measured.interval()
    assert low < measured.value < high


def test_exact_match_counts_every_character():
    assert exact_match(["a b", "a b ", "A b"], ["a b", "a b", "a b"]).value == pytest.approx(1 / 3)
