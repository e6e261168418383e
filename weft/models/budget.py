"""Solve the width for a wanted number of parameters."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import torch
from torch import nn

from weft.core.errors import ConfigError
from weft.models.config import ModelConfig, parse_count
from weft.nn.families import families

Build = Callable[[ModelConfig], nn.Module]

TOLERANCE = 0.01


def count_parameters(model: nn.Module) -> int:
    """Count the trainable parameters; a shared one counts once."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)


def solve_budget(config: ModelConfig, build: Build) -> ModelConfig:
    """Return the config whose model comes closest to `model.budget`, or the config as it is without one.

    The width is solved first, by bisection; if that leaves more than 1 % and a family has a finer
    knob (the feed-forward width of a transformer), then that. Widths from about 100 on come within
    1 %; what smaller ones leave is shown by `weft explain`.
    """
    if config.common.budget is None:
        return config
    wanted = parse_count(config.common.budget)
    step = math.lcm(*_multiples(config))

    def size(width: int) -> int:
        return count_on_meta(config.with_width(width), build)

    least = -(-_narrowest(config) // step)
    width = step * _nearest(lambda n: size(step * n), wanted, config.common.budget, least)

    def missed(solved: ModelConfig) -> float:
        return abs(count_on_meta(solved, build) / wanted - 1)

    solved = _refine(config.with_width(width), wanted, build)
    if missed(solved) <= TOLERANCE or width == step * least:
        return solved
    smaller = _refine(config.with_width(width - step), wanted, build)  # the finer knob only adds to a width
    return min(solved, smaller, key=missed)


def _multiples(config: ModelConfig) -> Iterator[int]:
    """Yield what the width must be a multiple of."""
    for side in config.sides.values():
        yield families[side.family].multiple(side.options)
    if config.common.attention == "multihead":
        yield config.common.attention_heads


def _narrowest(config: ModelConfig) -> int:
    """Return the smallest width there is: reading both ways takes a unit each way."""
    return 2 if any(side.bidirectional for side in config.sides.values()) else 1


def count_on_meta(config: ModelConfig, build: Build) -> int:
    """Count the parameters of a model without making any."""
    with torch.device("meta"):
        return count_parameters(build(config))


def _nearest(size: Callable[[int], int], wanted: int, budget: str, least: int = 1) -> int:
    """Return the n >= `least` whose size comes closest to `wanted`; sizes grow with n."""
    if size(least) > wanted * (1 + TOLERANCE):
        raise ConfigError(
            f"`model.budget` must be at least {size(least):,}, the smallest such model, but is {budget}. "
            "Raise it, or shrink the vocabulary or the number of layers."
        )
    high = least
    while size(high) < wanted:
        high *= 2
    low = max(high // 2, least)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) < wanted else (low, middle)
    return min(low, high, key=lambda n: abs(size(n) - wanted))


def _refine(config: ModelConfig, wanted: int, build: Build) -> ModelConfig:
    """Turn the finer knob of the families, if there is one and the width alone is not close enough."""
    knobs = {families[side.family].fine for side in config.sides.values()} - {None}
    for knob in sorted(filter(None, knobs)):
        if abs(count_on_meta(config, build) / wanted - 1) > TOLERANCE:

            def size(n: int, knob: str = knob, config: ModelConfig = config) -> int:
                return count_on_meta(config.with_option(knob, n), build)

            if size(1) <= wanted:
                config = config.with_option(knob, _nearest(size, wanted, str(wanted)))
    return config
