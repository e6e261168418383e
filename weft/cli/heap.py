"""Freed memory stays with the program, so that the next tensor of its size meets no page faults.

glibc gives the end of its heap back whenever much of it is free, and what a step of decoding frees the next
one asks for again: 90,000 page faults in 32 steps of a small Transformer, a quarter of their time.
"""

from __future__ import annotations

import ctypes
import os
import sys

_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # as malloc.h numbers them
KEPT = 1 << 30  # bytes that may lie free at the heap's end
LARGEST = 32 << 20  # bytes of the largest piece that is taken from the heap: glibc allows no more


def keep_freed_memory() -> bool:
    """Tell glibc to keep what is freed; return whether it does. Who set malloc up already is left alone."""
    settled = "GLIBC_TUNABLES" in os.environ or any(name.startswith("MALLOC_") for name in os.environ)
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if settled or mallopt is None:
        return False
    return bool(mallopt(_TRIM_THRESHOLD, KEPT)) and bool(mallopt(_MMAP_THRESHOLD, LARGEST))
