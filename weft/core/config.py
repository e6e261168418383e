"""Sections of configuration: dataclasses, read strictly, written out whole.

A section is a frozen dataclass whose fields are made by `option`. `parse` turns plain data (a YAML
mapping, `key=value` words of a command line) into it and refuses whatever it does not know.
"""

from __future__ import annotations

import dataclasses
import math
import sys
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from weft.core.errors import ConfigError, nearest

S = TypeVar("S")


class Word(str):
    """A value as typed on a command line: its meaning depends on the type the key wants."""


def option(
    default: Any,
    help: str,
    *,
    choices: Sequence[Any] | None = None,
    low: float | None = None,
    high: float | None = None,
) -> Any:
    """Declare one field of a section: its default, its meaning, the values it accepts."""
    metadata = {"help": help, "choices": choices, "low": low, "high": high}
    if callable(default):
        return dataclasses.field(default_factory=default, metadata=metadata)
    return dataclasses.field(default=default, metadata=metadata)


def parse(section: type[S], values: Any, where: str) -> S:
    """Read plain values into a section. `where` is the key's prefix ("train"), for errors."""
    values = {} if values is None else values
    if not isinstance(values, Mapping):
        raise ConfigError(f"`{where}` must be a mapping of keys to values, but is {values!r}.")
    fields = {f.name: f for f in dataclasses.fields(section)}  # type: ignore[arg-type]  # S is a dataclass
    hints = typing.get_type_hints(section)
    for key in values:
        if key not in fields:
            raise ConfigError(f"There is no key `{join(where, key)}`.{nearest_key(where, key, fields)}")
    parsed = {
        name: _check(convert(hints[name], values[name], join(where, name)), fields[name], join(where, name))
        for name in fields
        if name in values
    }
    return section(**parsed)


def plain(section: Any) -> Any:
    """Return a section as plain data, every default written out."""
    if dataclasses.is_dataclass(section):
        return {f.name: plain(getattr(section, f.name)) for f in dataclasses.fields(section)}
    if isinstance(section, Mapping):
        return {key: plain(value) for key, value in section.items()}
    if isinstance(section, tuple | list):
        return [plain(value) for value in section]
    return str(section) if isinstance(section, Word) else section


def merge(values: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """Return `values` with every key of `over` laid over it, mappings merged key by key."""
    merged = dict(values)
    for key, value in over.items():
        below = merged.get(key)
        if isinstance(below, Mapping) and isinstance(value, Mapping):
            value = merge(below, value)
        merged[key] = value
    return merged


def join(where: str, key: str) -> str:
    """Return the dotted name of `key` inside the section `where`."""
    return f"{where}.{key}" if where else str(key)


def nearest_key(where: str, key: str, known: Mapping[str, Any] | Sequence[str]) -> str:
    """Say which known key of section `where` comes closest to `key`."""
    return nearest(join(where, key), [join(where, name) for name in known])


def convert(kind: Any, value: Any, where: str) -> Any:
    """Turn a plain value (or a command-line Word) into type `kind`, or refuse it with its key."""
    origin = typing.get_origin(kind)
    if origin in (typing.Union, types.UnionType):
        return _convert_union(typing.get_args(kind), value, where)
    if isinstance(value, Word):
        value = _read_word(kind, origin, value)
    if dataclasses.is_dataclass(kind):
        return parse(kind, value, where)  # type: ignore[arg-type]  # a dataclass type
    if origin is tuple:
        return _convert_tuple(typing.get_args(kind)[0], value, where)
    if origin is dict:
        return _convert_dict(typing.get_args(kind)[1], value, where)
    return _convert_scalar(kind, value, where)


def _convert_union(kinds: tuple[Any, ...], value: Any, where: str) -> Any:
    nothing = value is None or (isinstance(value, Word) and value in ("null", "none", ""))
    if nothing and type(None) in kinds:
        return None
    failure = None
    for kind in kinds:
        if kind is type(None):
            continue
        try:
            return convert(kind, value, where)
        except ConfigError as error:
            failure = failure or error
    raise failure or ConfigError(f"`{where}` must not be empty.")


def _read_word(kind: Any, origin: Any, word: Word) -> Any:
    """Read a word from the command line as the type wants it: text stays text, lists split at commas."""
    if kind is str:
        return str(word)
    if origin is tuple and not word.startswith("["):
        return [Word(part) for part in word.split(",")] if word else []
    from weft.core.text import load_yaml  # kept out of the import of weft.nn

    return load_yaml(str(word), f"the value {str(word)!r}")


def _convert_tuple(kind: Any, value: Any, where: str) -> tuple[Any, ...]:
    if not isinstance(value, list | tuple):
        value = [value]
    return tuple(convert(kind, item, where) for item in value)


def _convert_dict(kind: Any, value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a mapping, but is {value!r}.")
    return {str(key): convert(kind, item, join(where, key)) for key, item in value.items()}


_NAMES = {int: "a whole number", float: "a number", bool: "true or false", str: "text"}


def _convert_scalar(kind: Any, value: Any, where: str) -> Any:
    if kind is Any:
        return value
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value) if abs(value) <= sys.float_info.max else math.inf * (1 if value > 0 else -1)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind is str and isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if isinstance(value, kind) and not (kind in (int, float) and isinstance(value, bool)):
        return value
    raise ConfigError(f"`{where}` must be {_NAMES.get(kind, kind)}, but is {value!r}.")


def _check(value: Any, field: dataclasses.Field[Any], where: str) -> Any:
    """Hold a value against the choices and limits its option declares."""
    rules = field.metadata
    for item in value if isinstance(value, tuple) else (value,):
        if rules.get("choices") and item is not None and item not in rules["choices"]:
            raise ConfigError(
                f"`{where}` cannot be `{item}`.{nearest(str(item), map(str, rules['choices']))}"
            )
        if isinstance(item, int | float) and not isinstance(item, bool):
            _check_range(item, rules, where)
    return value


def _check_range(value: float, rules: Mapping[str, Any], where: str) -> None:
    low, high = rules.get("low"), rules.get("high")
    if value != value:
        raise ConfigError(f"`{where}` must be a number, but is nan.")
    if low is not None and value < low:
        raise ConfigError(f"`{where}` must be at least {low}, but is {value}.")
    if high is not None and value > high:
        raise ConfigError(f"`{where}` must be at most {high}, but is {value}.")
