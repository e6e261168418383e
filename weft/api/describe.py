"""What was made of the data and the settings, in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from weft.data import Dataset
from weft.models import count_parameters
from weft.models.build import attention_spec

if TYPE_CHECKING:
    from weft.api.session import Session

MANY_UNKNOWN = 0.2  # share of a text's words


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


def advice(data: Dataset, fields: Mapping[str, Any]) -> list[str]:
    """Say what to try for a text cut into words of which every fifth is unknown."""
    unknown = data.counts.unknown if data.counts else {}
    words = [n for n in unknown if hasattr(fields[n], "tokenizer") and fields[n].tokenizer.kind == "word"]
    shares = {name: unknown[name] / max(1, int(data.lengths(name).sum())) for name in words}
    return [
        f"{share:.0%} of the words in {name} are unknown to its vocabulary. Try data.tokens=char or subword."
        for name, share in shares.items()
        if share > MANY_UNKNOWN
    ]


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
    attention = f" with {attention_spec(config).kind} attention" if len(config.sides) > 1 else ""
    return f"{config.families}{attention}, width {config.common.width}, {parameters:,} parameters"
