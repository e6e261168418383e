"""An evaluation as plain data, written and read as JSON: values, intervals, quality by length, examples."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from weft.core.errors import ArtefactError
from weft.evaluation.lengths import length_buckets
from weft.metrics import Evaluation, Measurement

EVALUATION = "evaluation.json"
EXAMPLES = 8  # of each kind: the first items, and the first wrong ones

Summary = dict[str, Any]


def summarise(evaluation: Evaluation, samples: int = 1000, seed: int = 0, buckets: int = 5) -> Summary:
    """Return an evaluation as plain data.

    items, unit  how many items; what their lengths count
    metrics      name -> {value, low, high, level, better, share, signature}
    by_length    per bucket {shortest, longest, items, metrics}, where lengths differ
    lengths      histogram {edges, counts} of the source lengths
    labels, confusion     of a classifier
    baseline     {label, accuracy} of a classifier's most frequent training label, told always
    examples     [{source, prediction, reference, right}]: the first items, and the first wrong ones;
                 numbers are neither right nor wrong
    """
    return {
        "items": len(evaluation.lengths),
        "unit": evaluation.unit,
        "metrics": _measured(evaluation.measurements, samples, seed),
        "by_length": _by_length(evaluation, samples, seed, buckets),
        "lengths": _histogram(evaluation.lengths),
        **{
            name: _plain(evaluation.extra[name])
            for name in ("labels", "confusion", "baseline")
            if name in evaluation.extra
        },
        "examples": _examples(evaluation),
    }


def write_evaluation(
    path: Path, evaluation: Evaluation, about: Mapping[str, Any] | None = None, samples: int = 1000
) -> Summary:
    """Write the summary of an evaluation as JSON at `path`, whole or not at all, and return it.

    `about` says what was measured (the run, the data, the checkpoint) and comes first.
    """
    summary = {"about": dict(about or {}), **summarise(evaluation, samples)}
    temporary = path.with_name(f".{path.name}.part")
    temporary.write_text(json.dumps(summary, ensure_ascii=False, indent=1, allow_nan=False) + "\n", "utf-8")
    os.replace(temporary, path)
    return summary


def read_evaluation(path: Path) -> Summary:
    """Read what `write_evaluation` wrote."""
    try:
        summary = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ArtefactError(
            f"{path} cannot be read ({type(error).__name__}). Evaluate the run again."
        ) from None
    if not isinstance(summary, dict) or "metrics" not in summary:
        raise ArtefactError(f"{path} holds no evaluation. Evaluate the run again.")
    return summary


def _measured(measurements: Mapping[str, Measurement], samples: int, seed: int) -> Summary:
    return {name: _one(measurement, samples, seed) for name, measurement in measurements.items()}


def _one(measurement: Measurement, samples: int, seed: int) -> Summary:
    low, high = measurement.interval(samples=samples, seed=seed)
    metric = measurement.metric
    return {
        "value": _finite(measurement.value),
        "low": _finite(low),
        "high": _finite(high),
        "level": 0.95,
        "better": metric.better,
        "share": metric.share,
        "signature": metric.signature,
    }


def _by_length(evaluation: Evaluation, samples: int, seed: int, buckets: int) -> list[Summary]:
    masks = length_buckets(evaluation.lengths, buckets)
    return [_bucket(evaluation, mask, samples, seed) for mask in masks] if len(masks) > 1 else []


def _bucket(evaluation: Evaluation, mask: Bool[ndarray, "n"], samples: int, seed: int) -> Summary:
    lengths = evaluation.lengths[mask]
    parts = {name: measurement.where(mask) for name, measurement in evaluation.measurements.items()}
    return {
        "shortest": int(lengths.min()),
        "longest": int(lengths.max()),
        "items": len(lengths),
        "metrics": _measured(parts, samples, seed),
    }


def _histogram(lengths: ndarray) -> Summary:
    """Count lengths in at most 30 bins of whole numbers."""
    low, high = int(lengths.min()), int(lengths.max())
    width = max(1, math.ceil((high - low + 1) / 30))
    counts, edges = np.histogram(lengths, np.arange(low, high + width + 1, width))
    return {"edges": edges.tolist(), "counts": counts.tolist()}


def _examples(evaluation: Evaluation) -> list[Summary]:
    if evaluation.predictions is None:
        return []
    return [_example(evaluation, i) for i in _shown(evaluation)]


def _shown(evaluation: Evaluation) -> list[int]:
    """Choose items by rule, not by taste: the first ones, then the first wrong ones among the rest."""
    predictions, references = evaluation.predictions or [], evaluation.references
    first = list(range(min(EXAMPLES, len(predictions))))
    if references is None or not evaluation.exact:
        return first
    later = range(len(first), len(predictions))
    return first + [i for i in later if predictions[i] != references[i]][:EXAMPLES]


def _example(evaluation: Evaluation, i: int) -> Summary:
    texts = {
        "source": evaluation.sources,
        "prediction": evaluation.predictions,
        "reference": evaluation.references,
    }
    example: Summary = {name: column[i] for name, column in texts.items() if column is not None}
    if "reference" in example and evaluation.exact:
        example["right"] = example["prediction"] == example["reference"]
    return example


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, ndarray) else value


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
