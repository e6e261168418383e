"""Items in buckets of about equal numbers, by source length."""

from __future__ import annotations

import numpy as np
from jaxtyping import Bool, Int
from numpy import ndarray


def length_buckets(lengths: Int[ndarray, "n"], count: int = 5) -> list[Bool[ndarray, "n"]]:
    """Return masks of up to `count` buckets, short to long.

    Items of one length share a bucket, and none holds fewer than half of n / count items.
    """
    shares = np.arange(1, count + 1) / count
    ends = np.unique(np.quantile(lengths, shares, method="inverted_cdf"))  # the longest of each bucket
    ends = _without_small(np.sort(lengths), ends, least=len(lengths) / count / 2)
    bucket = np.searchsorted(ends, lengths)
    return [bucket == i for i in range(len(ends))]


def _without_small(ordered: Int[ndarray, "n"], ends: Int[ndarray, "k"], least: float) -> Int[ndarray, "j"]:
    """Drop ends that would close a bucket of fewer than `least` items; the last one takes what is left."""
    kept, start = [], 0
    for end in ends:
        reached = int(np.searchsorted(ordered, end, side="right"))
        if reached - start >= least:
            kept.append(end)
            start = reached
    return np.array([*kept[:-1], ends[-1]])
