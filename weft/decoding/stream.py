"""Tokens handed out as they are made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch

from weft.core.errors import ConfigError
from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.decoding.config import DecodingConfig
from weft.decoding.greedy import most_likely
from weft.decoding.hypothesis import refuse_nan
from weft.decoding.limits import Limits
from weft.decoding.plan import begin
from weft.decoding.rollout import LOST, OPEN, Choose, advance, open_lanes
from weft.decoding.sample import chooser, lane_keys


@torch.no_grad()
def stream(
    stepper: Stepper,
    source: Any,
    config: DecodingConfig,
    bos: int,
    eos: int,
    limits: Limits | Tensor | None = None,
    prefix: Sequences | None = None,
    number: int = 0,
) -> Iterator[int]:
    """Yield the tokens of one row as they come, without prefix and eos: what `decode` would return."""
    choose = _choose(config)
    plan, rules, state = begin(stepper, source, 1, config, bos, eos, limits, prefix)
    lanes = open_lanes(rules, lane_keys(config, [number])[:1].to(rules.most.device))
    forced = int(rules.forced)
    while True:
        lanes, state, fate = advance(plan, choose, lanes, state)
        outcome, token = torch.cat([fate, lanes.history[:, -1]]).tolist()
        length = lanes.history.shape[1]
        refuse_nan(torch.zeros(1), torch.tensor([outcome == LOST]), length - 1)
        if outcome != OPEN:
            return
        if length > forced:
            yield token


def _choose(config: DecodingConfig) -> Choose:
    if config.method == "beam" and config.beam > 1:
        raise ConfigError("`decoding.method` must be greedy or sample to stream, but is beam. Try greedy.")
    return chooser(config) if config.method == "sample" else most_likely
