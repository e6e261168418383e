"""What each row must keep to: its fewest and most tokens, and how it must begin."""

from __future__ import annotations

from typing import NamedTuple

import torch

from weft.core.errors import ConfigError, InputError
from weft.core.sequences import Sequences
from weft.core.shapes import Int, Tensor
from weft.decoding.config import DecodingConfig


class Limits(NamedTuple):
    """How many tokens each row may have, bos and eos not counted."""

    least: Int[Tensor, "B"]
    most: Int[Tensor, "B"]


class Rules(NamedTuple):
    """The limits and forced prefix of each lane; selected with the lanes."""

    least: Int[Tensor, "B"]
    most: Int[Tensor, "B"]
    prefix: Int[Tensor, "B P"]
    forced: Int[Tensor, "B"]  # how many tokens of the prefix are valid


def length_limits(source_lengths: Int[Tensor, "B"], config: DecodingConfig) -> Limits:
    """Limit each row: most = max_length, or ⌊max_ratio · source length + max_extra⌋ where that is null."""
    most = (source_lengths * config.max_ratio + config.max_extra).long()
    if config.max_length is not None:
        most = torch.full_like(most, config.max_length)
    return Limits(torch.full_like(most, config.min_length).minimum(most), most)


def row_limits(limits: Limits | Tensor | None, batch_size: int, config: DecodingConfig) -> Limits:
    """Read what a caller gave (both limits, the most tokens alone, or nothing) under the configured ones."""
    if isinstance(limits, Limits):
        least, most = limits
    else:
        most = _most(limits, batch_size, config)
        least = torch.full_like(most, config.min_length)
    if config.max_length is not None:
        most = most.clamp(max=config.max_length)
    if not len(least) == len(most) == batch_size:
        raise InputError(
            f"`limits` must have one entry a row ({batch_size}), but has {len(least)} and {len(most)}."
        )
    return Limits(least.long().minimum(most.long()), most.long())


def _most(limits: Tensor | None, batch_size: int, config: DecodingConfig) -> Tensor:
    if limits is not None:
        return limits
    if config.max_length is None:
        raise ConfigError("`decoding.max_length` must be set where there is no source to measure. Try 200.")
    return torch.full((batch_size,), config.max_length)


def row_rules(limits: Limits, prefix: Sequences | None, eos: int) -> Rules:
    """Join limits and forced prefixes, after checking that they agree."""
    rows = len(limits.most)
    if prefix is None:
        prefix = Sequences(torch.zeros(rows, 0, dtype=torch.int64), torch.zeros(rows, dtype=torch.int64))
    _check_prefix(prefix, limits, eos)
    return Rules(*limits, prefix.data.long(), prefix.lengths)


def _check_prefix(prefix: Sequences, limits: Limits, eos: int) -> None:
    rows = len(limits.most)
    if prefix.batch_size != rows:
        raise InputError(f"`prefix` must have one entry a row ({rows}), but has {prefix.batch_size}.")
    lengths, most = prefix.lengths.tolist(), limits.most.tolist()
    for row, (length, limit) in enumerate(zip(lengths, most, strict=True), 1):
        if length > limit:
            raise InputError(
                f"`prefix` of row {row} must fit its limit of {limit} tokens, but has {length}. "
                f"Try a shorter prefix or decoding.max_length={length + 20}."
            )
    if bool(((prefix.data == eos) & prefix.mask()).any()):
        raise InputError(f"`prefix` must not hold the end token ({eos}): nothing follows it. Leave it out.")
