"""Music without a model: every key as likely as it was in training, whatever sounded before."""

from __future__ import annotations

import numpy as np

from weft.metrics import Measurement, frame_nll


def key_frequency_nll(train: list[np.ndarray], test: list[np.ndarray]) -> Measurement:
    """Measure the frame NLL of p(key) = (frames it sounds in + 1/2) / (frames + 1).

    Pieces are (T, keys); the first frame of each test piece is not counted.
    """
    frames = np.concatenate(train).astype(np.float64)
    share = (frames.sum(0) + 0.5) / (len(frames) + 1)
    on, off = np.log(share), np.log1p(-share)
    nll = [-(piece[1:] @ on + (1 - piece[1:].astype(np.float64)) @ off).sum() for piece in test]
    return frame_nll(nll, [len(piece) - 1 for piece in test])
