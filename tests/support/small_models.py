"""Small models of every shape on made-up fields."""

from types import SimpleNamespace
from typing import Any

import torch

from weft.core.sequences import Sequences
from weft.models import (
    build_causal,
    build_label,
    build_pooled,
    build_translation,
    parse_model,
)

TEXT, OTHER = SimpleNamespace(kind="text", size=30), SimpleNamespace(kind="text", size=25)
VALUES = SimpleNamespace(kind="values", width=3)
FAMILIES = ("rnn", "lstm", "gru", "tcn", "transformer")
BOTH = ("encoder", "decoder")
SHAPES: dict[str, tuple[tuple[str, ...], Any]] = {
    "causal": (("decoder",), lambda config: build_causal(TEXT, TEXT.size, config)),
    "label": (("encoder",), lambda config: build_label(TEXT, 5, config)),
    "pooled": (("encoder",), lambda config: build_pooled(VALUES, 5, config)),
    "translation": (BOTH, lambda config: build_translation(TEXT, OTHER, config)),
    "shared": (BOTH, lambda config: build_translation(TEXT, TEXT, config)),
}


def translation(encoder: str, decoder: str = "", seed: int = 0, shared: bool = False, **values: Any) -> Any:
    """Build a small translation model in float64, ready to be asked."""
    torch.manual_seed(seed)
    values = {"width": 8, "encoder": {"family": encoder}, "decoder": {"family": decoder or encoder}, **values}
    target = TEXT if shared else OTHER
    model = build_translation(TEXT, target, parse_model(values, BOTH)).double().eval()
    for leaf in model.parameters():
        leaf.data += 0.3 * torch.randn_like(leaf)  # far from the even start
    return model


def ids(*lengths: int, size: int = 25, first: int = 4) -> Sequences:
    """Draw rows of token ids."""
    return Sequences.pad([torch.randint(first, size, (n,)) for n in lengths])
