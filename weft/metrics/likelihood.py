"""Metrics of probability: how surprised a model is by the truth."""

from __future__ import annotations

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import ArrayLike

from weft.metrics.measure import Measurement, columns, metric_of_sums, ratio


def loss(nll: ArrayLike, counts: ArrayLike) -> Measurement:
    """Average the negative log-likelihood: sum nll / sum counts, in nats.

    nll (n,) holds each item's sum, counts (n,) how many targets it had.
    """
    return Measurement(metric_of_sums("loss", "lower", ratio), columns(nll, counts))


def perplexity(nll: ArrayLike, counts: ArrayLike) -> Measurement:
    """Measure perplexity: exp(sum nll / sum counts)."""
    return Measurement(metric_of_sums("perplexity", "lower", _perplexity), columns(nll, counts))


def bits(nll: ArrayLike, counts: ArrayLike, per: str = "character") -> Measurement:
    """Measure bits per character, byte or token: sum nll / (ln 2 sum counts).

    Counting characters (or bytes) whatever the tokens are makes all tokenizers comparable.
    """
    return Measurement(metric_of_sums(f"bits_per_{per}", "lower", _bits), columns(nll, counts))


def frame_nll(nll: ArrayLike, frames: ArrayLike) -> Measurement:
    """Measure the frame NLL of polyphonic music as Bai et al. count it.

    nll (n,) holds each piece's sum over 88 keys and over all frames but the first, in nats; frames (n,)
    how many frames that were. The value is the mean over all these frames of all pieces.
    """
    return Measurement(metric_of_sums("frame_nll", "lower", ratio), columns(nll, frames))


def _perplexity(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    with np.errstate(over="ignore"):
        return np.exp(ratio(sums))


def _bits(sums: Float[ndarray, "m k"]) -> Float[ndarray, "m"]:
    return ratio(sums) / np.log(2)
