"""Words of a command line: `key=value` settings among paths."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from weft.core.config import Word
from weft.core.errors import ConfigError

SHORT = {"task": "task.name", "model": "model.family"}  # a section's name alone means its first key
_SETTING = re.compile(r"([A-Za-z_][\w-]*(?:\.[\w-]+)*)=(.*)", re.DOTALL)


def split_words(words: Iterable[str]) -> tuple[list[str], dict[str, Any]]:
    """Part the `key=value` words from the rest and nest them: `a.b=1` gives {"a": {"b": "1"}}.

    A path that looks like a setting is written with its folder: `./a=b.tsv`.
    """
    rest: list[str] = []
    nested: dict[str, Any] = {}
    for word in words:
        setting = _SETTING.fullmatch(word)
        if setting:
            _put(nested, SHORT.get(setting[1], setting[1]), Word(setting[2]))
        else:
            rest.append(word)
    return rest, nested


def parse_overrides(words: Iterable[str]) -> dict[str, Any]:
    """Nest `key=value` words, and refuse any other word."""
    rest, nested = split_words(words)
    if rest:
        raise ConfigError(f"`{rest[0]}` is not a setting. Write it as key=value.")
    return nested


def _put(nested: dict[str, Any], key: str, value: Word) -> None:
    """Set the dotted `key`; a key stands once and is either a value or a section."""
    *sections, name = key.split(".")
    for section in sections:
        nested = nested.setdefault(section, {})
        if not isinstance(nested, dict):
            raise ConfigError(f"`{section}` is given both as a value and as a section (`{key}`). Keep one.")
    if name in nested:
        raise ConfigError(f"`{key}` is given twice. Keep one of them.")
    nested[name] = value
