"""Metrics of written output: BLEU and chrF as sacreBLEU counts them, exact match."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from weft.core.errors import ConfigError, nearest
from weft.metrics.measure import Measurement, columns, metric_of_sums, ratio, require_pairs

ORDERS = 6  # longest character n-gram of chrF
BETA = 2  # chrF counts recall twice

References = Sequence[str] | Sequence[Sequence[str]]  # one an item, or several


def bleu(predictions: Sequence[str], references: References, tokenize: str = "13a") -> Measurement:
    """Measure corpus BLEU, cased, as sacreBLEU does; the signature says exactly how."""
    require_pairs(predictions, references)
    if tokenize not in BLEU.TOKENIZERS:
        raise ConfigError(f"There is no BLEU tokenizer `{tokenize}`.{nearest(tokenize, BLEU.TOKENIZERS)}")
    scorer = BLEU(
        tokenize=tokenize, effective_order=True
    )  # as it asks for single sentences; counts are the same
    scores = [scorer.sentence_score(p, r) for p, r in zip(predictions, several(references), strict=True)]
    stats = np.array([[s.sys_len, s.ref_len, *s.counts, *s.totals] for s in scores], dtype=np.float64)
    return Measurement(metric_of_sums("bleu", "higher", _bleu, _bleu_signature(tokenize, references)), stats)


def _bleu(sums: Float[ndarray, "m 10"]) -> Float[ndarray, "m"]:
    scores = [
        BLEU.compute_bleu([*row[2:6]], [*row[6:]], int(row[0]), int(row[1]), smooth_method="exp").score
        for row in sums.round().astype(int).tolist()
    ]
    return np.array(scores)


def _bleu_signature(tokenize: str, references: References) -> str:
    scorer = BLEU(tokenize=tokenize, force=True)
    scorer.corpus_score([""], [[""]] * _references_an_item(references))
    return str(scorer.get_signature())


def chrf(predictions: Sequence[str], references: References) -> Measurement:
    """Measure corpus chrF2 as sacreBLEU does: F2 of the mean precision and recall of character n-grams."""
    require_pairs(predictions, references)
    stats = [_chrf_stats(p, r) for p, r in zip(predictions, several(references), strict=True)]
    signature = _chrf_signature(references)
    return Measurement(metric_of_sums("chrf", "higher", _chrf, signature), np.array(stats, dtype=np.float64))


def _chrf_signature(references: References) -> str:
    scorer = CHRF()
    scorer.corpus_score([""], [[""]] * _references_an_item(references))
    return str(scorer.get_signature())


def _chrf_stats(prediction: str, references: Sequence[str]) -> ndarray:
    """Count n-grams of orders 1 to 6 against the reference that fits best: (predicted | true | shared)."""
    predicted = _ngrams(prediction)
    candidates = np.array([_overlap(predicted, _ngrams(reference)) for reference in references], dtype=float)
    return candidates[_chrf(candidates).argmax()]


def _ngrams(text: str) -> list[Counter[str]]:
    text = "".join(text.split())
    return [Counter(text[i : i + n] for i in range(len(text) - n + 1)) for n in range(1, ORDERS + 1)]


def _overlap(predicted: list[Counter[str]], true: list[Counter[str]]) -> list[int]:
    """Count predicted, true and shared n-grams of each order; predicted ones only where there are any."""
    pairs = list(zip(predicted, true, strict=True))
    return [
        *(p.total() if t else 0 for p, t in pairs),
        *(t.total() for _, t in pairs),
        *((p & t).total() for p, t in pairs),
    ]


def _chrf(sums: Float[ndarray, "m 18"]) -> Float[ndarray, "m"]:
    """Return 100 (1 + β²) P R / (β² P + R), P and R averaged over the orders that both sides reach."""
    predicted, true, shared = np.split(sums, 3, axis=1)  # (m, 6) each
    reached = (predicted > 0) & (true > 0)
    orders = np.maximum(reached.sum(1), 1)
    precision = np.where(reached, shared / np.maximum(predicted, 1), 0).sum(1) / orders
    recall = np.where(reached, shared / np.maximum(true, 1), 0).sum(1) / orders
    below = BETA**2 * precision + recall
    return 100 * (1 + BETA**2) * precision * recall / np.where(below > 0, below, 1)


def several(references: References) -> list[list[str]]:
    """Return the references of each item as a list."""
    return [[item] if isinstance(item, str) else list(item) for item in references]


def _references_an_item(references: References) -> int:
    return max((len(item) for item in several(references)), default=1)


def exact_match(predictions: Sequence[Hashable], references: Sequence[Hashable]) -> Measurement:
    """Measure the share of predictions that equal their reference, every character counting."""
    require_pairs(predictions, references)
    right = [p == r for p, r in zip(predictions, references, strict=True)]
    return Measurement(
        metric_of_sums("exact_match", "higher", ratio, share=True), columns(right, np.ones(len(right)))
    )
