"""Which part of a model a name belongs to: embedding, a layer of a side, attention, head."""

from __future__ import annotations

from collections.abc import Iterable

from torch import nn

_WORDS = {
    "head": {"head"},
    "embedding": {"input", "source_input", "target_input"},
    "attention": {"reader", "cross_attention", "cross_branch"},
    "bridge": {"bridges", "condition"},
}
_ORDER = ("embedding", "encoder", "bridge", "attention", "decoder", "other", "head")


def part_of(name: str) -> str:
    """Return the part a parameter or module belongs to, by its dotted name.

    Attention means attention to a source; a Transformer's attention to itself belongs to its layer.
    """
    words = name.split(".")
    for part, marks in _WORDS.items():
        if marks & set(words):
            return part
    side = "encoder" if "encoder" in words else "decoder" if "backbone" in words else None
    if side is None:
        return "other"
    layer = next((int(word) + 1 for word in words if word.isdigit()), None)
    return f"{side}, rest" if layer is None else f"{side} layer {layer}"


def in_order(parts: Iterable[str]) -> list[str]:
    """Return part names in the order data flows through them, layers by number."""

    def place(part: str) -> tuple[int, bool, int]:
        number = part.rpartition(" ")[2]
        head = part.split()[0].rstrip(",")
        return _ORDER.index(head), part.endswith("rest"), int(number) if number.isdigit() else 0

    return sorted(dict.fromkeys(parts), key=place)


def count_parts(model: nn.Module) -> dict[str, int]:
    """Count the trainable parameters of each part; one that parts share belongs to the first."""
    counts: dict[str, int] = {}
    for name, parameter in model.named_parameters():
        if parameter.requires_grad:
            part = part_of(name)
            counts[part] = counts.get(part, 0) + parameter.numel()
    return {part: counts[part] for part in in_order(counts)}
