"""Numbers from predictions: every metric gives a value, an interval, and its parts by item."""

from weft.metrics.classes import (
    accuracy,
    confusion,
    label_macro_f1,
    label_micro_f1,
    label_set_accuracy,
    macro_f1,
    token_accuracy,
    token_macro_f1,
)
from weft.metrics.evaluation import Evaluation
from weft.metrics.likelihood import bits, frame_nll, loss, perplexity
from weft.metrics.measure import Measurement, Metric, metric_of_sums
from weft.metrics.numbers import mae, mase, mse, smape, spearman
from weft.metrics.rouge import rouge_1, rouge_2, rouge_l
from weft.metrics.spans import span_f1, spans
from weft.metrics.strings import bleu, chrf, exact_match

__all__ = [
    "Evaluation",
    "Measurement",
    "Metric",
    "accuracy",
    "bits",
    "bleu",
    "chrf",
    "confusion",
    "exact_match",
    "frame_nll",
    "label_macro_f1",
    "label_micro_f1",
    "label_set_accuracy",
    "loss",
    "macro_f1",
    "mae",
    "mase",
    "metric_of_sums",
    "mse",
    "perplexity",
    "rouge_1",
    "rouge_2",
    "rouge_l",
    "smape",
    "span_f1",
    "spans",
    "spearman",
    "token_accuracy",
    "token_macro_f1",
]
