"""What was made of the data and the settings, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft.data import Dataset
from weft.models import count_parameters

if TYPE_CHECKING:
    from weft.api.session import Session


def left_out(data: Dataset) -> list[str]:
    """Say what of the rows was dropped, cut or unknown."""
    counts = data.counts
    if counts is None:
        return []
    words = {
        "empty ones dropped": counts.empty,
        "over-long ones dropped": counts.too_long,
        "over-long ones cut": counts.cut,
        **{f"unknown in {name}": count for name, count in counts.unknown.items()},
    }
    return [f"{count:,} {word}" for word, count in words.items() if count]


def describe_field(field: Any) -> str:
    """Say how large what was learned of a field is: its vocabulary, its labels, its channels."""
    kind = f"{field.kind} as {field.tokenizer.kind}s" if hasattr(field, "tokenizer") else field.kind
    names = {"size": "entries", "width": "channels"}
    return ", ".join(
        [kind, *(f"{getattr(field, key):,} {word}" for key, word in names.items() if hasattr(field, key))]
    )


def describe_model(session: Session) -> str:
    """Say which families, how wide, how many parameters."""
    config: Any = session.settings.model
    parameters = count_parameters(session.model)
    attention = f" with {config.common.attention} attention" if len(config.sides) > 1 else ""
    return f"{config.families}{attention}, width {config.common.width}, {parameters:,} parameters"
