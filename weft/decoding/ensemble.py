"""Several models that speak as one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch

from weft.core.errors import InputError
from weft.core.protocols import Stepper
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State


class Ensemble:
    """Average the probabilities of several Steppers over one vocabulary; itself a Stepper.

    log p(y) = log(1/n ∑_i p_i(y)). Every member starts from the same source.
    """

    def __init__(self, steppers: Sequence[Stepper]):
        if not steppers:
            raise InputError("An ensemble must have at least one member, but has 0. Name a run.")
        self.steppers = tuple(steppers)

    def start(self, source: Any) -> State:
        """Start every member; their states side by side."""
        return tuple(stepper.start(source) for stepper in self.steppers)

    def step(self, tokens: Int[Tensor, "B"], state: State) -> tuple[Float[Tensor, "B V"], State]:
        """Step every member and average."""
        pairs = [stepper.step(tokens, part) for stepper, part in zip(self.steppers, state, strict=True)]
        log_probs = [log_prob.float() for log_prob, _ in pairs]
        self._check_vocabularies([log_prob.shape[1] for log_prob in log_probs])
        mean = torch.logsumexp(torch.stack(log_probs), 0) - math.log(len(pairs))
        return mean.clamp(max=0), tuple(part for _, part in pairs)

    def select(self, state: State, rows: Int[Tensor, "R"]) -> State:
        """Keep the same lanes of every member."""
        return tuple(stepper.select(part, rows) for stepper, part in zip(self.steppers, state, strict=True))

    def _check_vocabularies(self, sizes: list[int]) -> None:
        if len(set(sizes)) > 1:
            raise InputError(
                f"Members of an ensemble must share one vocabulary, but theirs have {sizes} entries. "
                "Choose runs trained with one tokenizer."
            )
