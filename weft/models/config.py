"""The model section: one width, and a family with its options for each side a task needs.

    model: {family: lstm, width: 256, layers: 2, attention: additive, decoder: {layers: 1}}

A key of a family stands beside the common ones and goes to every side whose family knows it;
`model.encoder.` and `model.decoder.` speak to one side alone.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.config import Word, convert, nearest_key, option, parse, plain
from weft.core.errors import ConfigError
from weft.nn.attention import KINDS
from weft.nn.families import families

SIDES = ("encoder", "decoder")


@dataclass(frozen=True)
class Common:
    """Keys of the model section that belong to no family."""

    width: int = option(128, "width of every layer; `budget` overrides it", low=1, high=1 << 16)
    budget: str | None = option(None, "parameters wanted, such as 5M or 300K: the width is solved for it")
    input_dropout: float = option(0.1, "dropout on embedded inputs", low=0, high=0.95)
    output_dropout: float = option(0.0, "dropout before the head", low=0, high=0.95)
    tied: bool = option(True, "the output matrix of a text is its embedding")
    pooling: str = option(
        "summary",
        "what one answer a sequence is read from",
        choices=("summary", "mean", "max"),
    )
    attention: str = option(
        "auto",
        "how a decoder looks at its source (auto: multihead in a transformer, additive elsewhere)",
        choices=("auto", *KINDS),
    )
    attention_heads: int = option(4, "heads of multihead attention outside a transformer", low=1)
    attention_values: bool = option(False, "learned value encodings in attention of one head")
    word_width: int = option(64, "width of the character encoder of words", low=1)
    word_dropout: float = option(
        0.0,
        "share of words read as unknown in training, where the input is words, not text",
        low=0,
        high=0.95,
    )
    patch: int = option(1, "steps of a numeric series that become one input", low=1)


@dataclass(frozen=True)
class Side:
    """One side of a model: a family and its options."""

    family: str
    options: Any
    bidirectional: bool = True

    def plain(self) -> dict[str, Any]:
        """Return the side as plain data."""
        return {"family": self.family, "bidirectional": self.bidirectional, **plain(self.options)}


@dataclass(frozen=True)
class ModelConfig:
    """The model section, read."""

    common: Common
    sides: dict[str, Side]

    def plain(self) -> dict[str, Any]:
        """Return the section as plain data, every default written out."""
        return {**plain(self.common), **{name: side.plain() for name, side in self.sides.items()}}

    @property
    def families(self) -> str:
        """Return the families' names: `lstm`, or `transformer-gru` where the sides differ."""
        return "-".join(dict.fromkeys(side.family for side in self.sides.values()))

    def with_width(self, width: int) -> ModelConfig:
        """Return the same with another width and no budget left to solve."""
        return dataclasses.replace(self, common=dataclasses.replace(self.common, width=width, budget=None))

    def with_option(self, key: str, value: Any) -> ModelConfig:
        """Return the same with one option set on every side that has it."""
        sides = {
            name: dataclasses.replace(side, options=dataclasses.replace(side.options, **{key: value}))
            if hasattr(side.options, key)
            else side
            for name, side in self.sides.items()
        }
        return dataclasses.replace(self, sides=sides)


def parse_model(values: Mapping[str, Any] | None, needed: tuple[str, ...]) -> ModelConfig:
    """Read the model section for the sides a task needs ("encoder", "decoder")."""
    values = dict(values or {})
    _spread_family(values)
    common_keys = {f.name for f in dataclasses.fields(Common)}
    own = {side: _mapping(values.pop(side, None), side) for side in SIDES}
    family = values.pop("family", None)
    shared = {key: values.pop(key) for key in list(values) if key not in common_keys}
    sides = {side: _parse_side(side, own[side], family, shared) for side in needed}
    _refuse_unknown(shared, sides, common_keys)
    _refuse_other_side(own, needed)
    return ModelConfig(parse(Common, values, "model"), sides)


def _spread_family(values: dict[str, Any]) -> None:
    """Read `lstm+additive` as family and attention."""
    family = values.get("family")
    if isinstance(family, str) and "+" in family:
        values["family"], attention = family.split("+", 1)
        values["attention"] = Word(attention)


def _mapping(value: Any, side: str) -> dict[str, Any]:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"`model.{side}` must be a mapping of keys to values, but is {value!r}.")
    return dict(value or {})


def _parse_side(name: str, own: dict[str, Any], family: Any, shared: Mapping[str, Any]) -> Side:
    family = str(own.pop("family", family or "lstm"))
    usual = shared.get("bidirectional", True) if name == "encoder" else False
    both_ways = own.pop("bidirectional", usual)
    bidirectional = convert(bool, both_ways, "model.bidirectional")
    if bidirectional and name == "decoder":
        raise ConfigError(
            "A decoder must be causal, but `model.decoder.bidirectional` is true. A network that looks "
            "both ways cannot predict what comes next; use it as an encoder."
        )
    config = families[family].Config
    known = {f.name for f in dataclasses.fields(config)}
    options = {key: value for key, value in shared.items() if key in known} | own
    return Side(family, parse(config, options, f"model.{name}"), bidirectional)


def _refuse_unknown(shared: Mapping[str, Any], sides: Mapping[str, Side], common_keys: set[str]) -> None:
    known = {f.name for side in sides.values() for f in dataclasses.fields(side.options)}
    known |= {"bidirectional"} if "encoder" in sides else set()
    for key in shared:
        if key == "bidirectional" and key not in known and convert(bool, shared[key], "model.bidirectional"):
            raise ConfigError(
                "`model.bidirectional` must be false for a task that predicts what comes next: "
                "only a causal model can. Leave the key out."
            )
        if key not in known and key != "bidirectional":
            names = sorted(known | common_keys | {"family", *SIDES})
            families_used = " and ".join(dict.fromkeys(side.family for side in sides.values()))
            raise ConfigError(
                f"There is no key `model.{key}` for {families_used}.{nearest_key('model', key, names)}"
            )


def _refuse_other_side(own: Mapping[str, dict[str, Any]], needed: tuple[str, ...]) -> None:
    for side, values in own.items():
        if values and side not in needed:
            raise ConfigError(f"This task has no {side}, but `model.{side}` is given. Leave it out.")


def parse_count(text: str, where: str = "model.budget") -> int:
    """Read a number of parameters: 300K, 5M, 1.5B or a plain number."""
    factors = {"k": 1e3, "m": 1e6, "b": 1e9}
    factor = factors.get(text[-1:].lower(), 1)
    digits = text[:-1] if factor != 1 else text
    try:
        count = int(float(digits.replace("_", "").replace(",", "")) * factor)
    except (ValueError, OverflowError):
        raise ConfigError(f"`{where}` must be a number such as 300K or 5M, but is {text!r}.") from None
    if count < 1:
        raise ConfigError(f"`{where}` must be at least 1, but is {text}.")
    return count
