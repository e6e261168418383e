"""What scoring a data set gives: the measurements, and what is needed to look closer."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from jaxtyping import Int
from numpy import ndarray

from weft.metrics.measure import Measurement


@dataclass
class Evaluation:
    """Every metric of one data set, item by item.

    measurements  name -> measurement; the first is the one to judge by
    lengths       (n,) source length of each item, counted in `unit`
    predictions   as text, one an item, where output can be written so; likewise references and sources
    exact         whether a prediction is right where it equals its reference; a number is only near
    extra         what belongs to the task: "confusion" (C, C) and "labels" [C] for a classifier,
                  "baseline" {label, accuracy}: the most frequent label of training, told always
    """

    measurements: dict[str, Measurement]
    lengths: Int[ndarray, "n"]
    predictions: list[str] | None = None
    references: list[str] | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    sources: list[str] | None = None
    unit: str = "tokens"
    exact: bool = True
