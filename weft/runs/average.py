"""The mean of several checkpoints' weights."""

from __future__ import annotations

from collections.abc import Sequence

from weft.core.errors import ConfigError
from weft.core.shapes import Tensor
from weft.runs.checkpoint import Checkpoint
from weft.runs.tensors import find_aliases


def average(checkpoints: Sequence[Checkpoint]) -> dict[str, Tensor]:
    """Return the mean weights of checkpoints of one run.

    mean[name] = Σ_i w_i[name] / n, summed in float64. What is no floating-point number (a count)
    is taken from the last. Tied weights stay tied.
    """
    if not checkpoints:
        raise ConfigError("An average needs at least 1 checkpoint, but there are 0. Train longer first.")
    for checkpoint in checkpoints:
        checkpoint.verify()
    last = checkpoints[-1].weights()
    kept, aliases = find_aliases(last)
    sums = {name: tensor.double() for name, tensor in kept.items() if tensor.is_floating_point()}
    for checkpoint in checkpoints[:-1]:
        weights = checkpoint.weights()
        for name, total in sums.items():
            total += weights[name]
    means = {name: (total / len(checkpoints)).to(last[name].dtype) for name, total in sums.items()}
    mean = {name: means.get(name, tensor) for name, tensor in kept.items()}
    return {name: mean[aliases.get(name, name)] for name in last}
