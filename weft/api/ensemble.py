"""Several runs that speak as one.

What a task needs of a model to search is its `stepper`; an ensemble puts one in its place that drives
every member, and gives the members where a task expects its model.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from torch import nn

from weft.api.run import Run
from weft.core.errors import InputError
from weft.decoding import DecodingConfig
from weft.decoding import Ensemble as MeanStepper
from weft.tasks import Prediction


class Ensemble:
    """Runs of one vocabulary whose next tokens are chosen by their mean probability."""

    def __init__(self, runs: Sequence[Run]):
        check(runs)
        self.runs = tuple(runs)
        self.models = nn.ModuleList(run.model for run in runs)
        member = runs[0].task
        self.task = copy.copy(member)
        self.task.stepper = lambda models: MeanStepper([member.stepper(model) for model in models])

    def decoding(self, **changes: Any) -> DecodingConfig:
        """Return the first run's way of searching, with changes."""
        return self.runs[0].decoding(**changes)

    def predictions(self, inputs: Iterable[Any], first: int = 0, **changes: Any) -> Iterator[Prediction]:
        """Answer raw inputs one by one, in order, searching as the first run does, with changes."""
        return self.task.predict(self.models, inputs, self.decoding(**changes), first)

    def stream(self, source: Any = "", number: int = 0, **changes: Any) -> Iterator[str]:
        """Answer one input piece by piece, as its tokens come."""
        return self.task.stream(self.models, source, self.decoding(**changes), number)

    def predict(self, inputs: Iterable[Any], **changes: Any) -> list[str]:
        """Answer raw inputs as text."""
        return [prediction.text for prediction in self.predictions(inputs, **changes)]


def check(runs: Sequence[Run]) -> None:
    """Refuse runs that cannot speak as one."""
    if not runs:
        raise InputError("An ensemble needs at least one run, but was given none.")
    first = runs[0]
    if not hasattr(first.task, "stepper"):
        raise InputError(
            f"Only runs that write token by token can be joined, but {first.path} does {first.settings.task}."
        )
    learned = {name: field.plain() for name, field in first.session.fields.items()}
    for run in runs[1:]:
        own = {name: field.plain() for name, field in run.session.fields.items()}
        if run.settings.task != first.settings.task or own != learned:
            raise InputError(
                f"An ensemble must share task and vocabulary, but {run.path} and {first.path} differ. "
                "Train them on the same data with the same data keys."
            )
