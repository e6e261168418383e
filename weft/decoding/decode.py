"""Search as the configuration says."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.decoding.beam import beam
from weft.decoding.config import DecodingConfig
from weft.decoding.greedy import greedy
from weft.decoding.hypothesis import Hypothesis
from weft.decoding.limits import Limits
from weft.decoding.sample import sample


def decode(
    stepper: Stepper,
    source: Any,
    batch_size: int,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None = None,
    prefix: Sequences | None = None,
    numbers: Sequence[int] | None = None,
) -> list[list[Hypothesis]]:
    """Return each row's hypotheses by `config.method`.

    limits   Limits, or the most tokens of each row (B,); null: `config.max_length`
    prefix   tokens each row must begin with
    numbers  the rows' numbers in the corpus; only sampling looks at them
    """
    if config.method == "sample":
        return sample(stepper, source, batch_size, config, bos, eos, limits, prefix, numbers)
    search = {"greedy": greedy, "beam": beam}[config.method]
    return search(stepper, source, batch_size, config, bos, eos, limits, prefix)
