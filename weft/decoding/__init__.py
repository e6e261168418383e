"""Search over a Stepper: greedy, beam, sampling, scoring, ensembles, streaming. It knows no model."""

from weft.decoding.beam import beam
from weft.decoding.config import DecodingConfig
from weft.decoding.decode import decode
from weft.decoding.ensemble import Ensemble
from weft.decoding.greedy import greedy
from weft.decoding.hypothesis import Hypothesis, length_penalty
from weft.decoding.limits import Limits, length_limits
from weft.decoding.sample import sample
from weft.decoding.scoring import score
from weft.decoding.stream import stream

__all__ = [
    "DecodingConfig",
    "Ensemble",
    "Hypothesis",
    "Limits",
    "beam",
    "decode",
    "greedy",
    "length_limits",
    "length_penalty",
    "sample",
    "score",
    "stream",
]
