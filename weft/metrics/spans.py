"""Metrics of spans written as tags: B-X begins a span of type X, I-X continues it, O is outside.

BIOES writes more: E-X ends a span, S-X is one of a single element; BILOU calls these L-X and U-X.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from jaxtyping import Float
from numpy import ndarray

from weft.metrics.measure import Measurement, columns, f1, metric_of_sums, require_pairs

Span = tuple[str, int, int]  # type, first position, one past the last

CONTINUES, ENDS, MARKS = ("I", "E", "L"), ("E", "L", "S", "U"), ("B", "I", "E", "L", "S", "U")


def spans(tags: Sequence[str]) -> set[Span]:
    """Read the spans out of BIO (IOB2), BIOES or BILOU tags.

    An I-X or E-X that continues no span of type X begins one, as in the CoNLL scorer, so IOB1 is read too.
    """
    return set(_spans(tags))


def _spans(tags: Sequence[str]) -> Iterator[Span]:
    open_type, start = None, 0
    for position, tag in enumerate([*tags, "O"]):
        prefix, _, name = tag.partition("-")
        if prefix not in CONTINUES or name != open_type:
            if open_type is not None:
                yield open_type, start, position
            open_type, start = (name if prefix in MARKS else None), position
        if prefix in ENDS and open_type is not None:
            yield open_type, start, position + 1
            open_type = None


def span_f1(predictions: Sequence[Sequence[str]], references: Sequence[Sequence[str]]) -> Measurement:
    """Measure F1 over whole spans: a hit has the right type and both ends right."""
    require_pairs(predictions, references)
    found = [(spans(p), spans(r)) for p, r in zip(predictions, references, strict=True)]
    stats = columns(
        [len(predicted & true) for predicted, true in found],
        [len(predicted) for predicted, _ in found],
        [len(true) for _, true in found],
    )
    return Measurement(metric_of_sums("span_f1", "higher", _span_f1, share=True), stats)


def _span_f1(sums: Float[ndarray, "m 3"]) -> Float[ndarray, "m"]:
    return f1(*sums.T)
