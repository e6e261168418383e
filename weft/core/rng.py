"""Chance as a pure function of names: the same seed and names give the same stream, always."""

import hashlib

import numpy as np


def derive(seed: int, *names: object) -> int:
    """Return a 63-bit seed that depends on `seed` and every name, and on nothing else."""
    text = "\x1f".join([str(seed), *map(str, names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def numpy_stream(seed: int, *names: object) -> np.random.Generator:
    """Return NumPy's generator for this seed and these names."""
    return np.random.default_rng(derive(seed, *names))
