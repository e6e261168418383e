"""What a family is: its options, and how to build its causal and its reading form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from weft.core.protocols import Backbone, Encoder
from weft.core.registry import Registry


@dataclass(frozen=True)
class AttentionSpec:
    """How a decoder looks at its source. `kind="none"`: it only gets the summary."""

    kind: str = "none"
    heads: int = 1
    values: bool = False


@dataclass(frozen=True)
class Family:
    """One entry of the registry.

    Config    dataclass of the family's options
    backbone  (width, config, attention or None) -> causal network of that width; with an attention
              it decodes a source
    encoder   (width, config, bidirectional) -> network that reads whole sequences
    multiple  (config) -> the width must be a multiple of this
    fine      option that changes the size in finer steps than the width does
    streams   the state has a fixed size however much was read, so it can be carried through any text
    sees      (config) -> how many steps one output depends on, where that is bounded
    """

    Config: type
    backbone: Callable[[int, Any, AttentionSpec | None], Backbone]
    encoder: Callable[[int, Any, bool], Encoder]
    multiple: Callable[[Any], int]
    fine: str | None = None
    streams: bool = True
    sees: Callable[[Any], int] | None = None


families: Registry[Family] = Registry("family")
