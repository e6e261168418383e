"""How long the limits of a configuration let training go on."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

from weft.data import Feed
from weft.training import TrainConfig
from weft.training.config import epochs_limit
from weft.training.limits import steps_an_epoch


@dataclass(frozen=True)
class Plan:
    """Steps and target elements until the first limit; None where none of them can be told."""

    batch_tokens: float  # target elements a batch, on average
    batches: int | None  # an epoch; None where the data are made up
    steps: int | None
    tokens: float | None

    def within(self, minutes: float | None, tokens_per_second: float) -> Plan:
        """Return the plan under a limit in minutes, at a measured speed."""
        if not minutes:
            return self
        reached = minutes * 60 * tokens_per_second
        if self.tokens is not None and self.tokens <= reached:
            return self
        a_step = self.tokens / self.steps if self.tokens and self.steps else self.batch_tokens
        return dataclasses.replace(self, tokens=reached, steps=round(reached / a_step))


def plan_training(config: TrainConfig, feed: Feed, batch_tokens: float, assumed: bool) -> Plan:
    """Reckon how many steps the limits in steps, epochs and tokens allow."""
    batches, step = feed.batches(0), batch_tokens * config.accumulate
    steps_each = steps_an_epoch(config, feed)
    epochs = epochs_limit(config, steps_each)
    limits = [
        config.steps,
        -(-config.tokens // max(round(step), 1)) if config.tokens else None,
        epochs * steps_each if epochs and not assumed else None,
    ]
    steps = min((limit for limit in limits if limit), default=None)
    tokens = None if steps is None else steps * step
    if tokens is not None and epochs and not assumed:
        tokens = min(tokens, epochs * batches * batch_tokens)  # the last step of an epoch may be smaller
    return Plan(batch_tokens, None if assumed else batches, steps, tokens)
