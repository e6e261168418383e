"""Whether CUDA's run-time compiler is here, which compiles without a GPU too."""

import contextlib
from collections.abc import Iterator

import pytest
import torch

from weft.ops.kernels import cuda


@contextlib.contextmanager
def as_if_built_for_cuda() -> Iterator[None]:
    """Let a torch that was built without CUDA name the version whose compiler is looked for."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(torch.version, "cuda", torch.version.cuda or "13.0")
        yield


def is_here() -> bool:
    """Tell whether it is found."""
    with as_if_built_for_cuda():
        try:
            cuda._compiler()
        except OSError:
            return False
    return True
