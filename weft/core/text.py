"""YAML as weft reads and writes it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import yaml

from weft.core.errors import ConfigError


class _Loader(yaml.SafeLoader):
    """YAML as people read it: `no` is a word, `1e-3` is a number, a key stands once."""

    def construct_mapping(self, node: Any, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        for i, key in enumerate(keys):
            if key in keys[:i]:
                line = node.value[i][0].start_mark.line + 1
                raise ConfigError(f"Key `{key}` stands twice, again in line {line}. Keep one of them.")
        return super().construct_mapping(node, deep)


_Loader.yaml_implicit_resolvers = {
    first: [
        (tag, pattern)
        for tag, pattern in pairs
        if not tag.endswith((":bool", ":float", ":timestamp", ":int"))
    ]
    for first, pairs in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_Loader.add_implicit_resolver("tag:yaml.org,2002:bool", re.compile(r"^(true|false)$"), list("tf"))
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:int", re.compile(r"^[-+]?(0|[1-9][0-9]*)$"), list("-+0123456789")
)
_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(
        r"^[-+]?(\.[0-9]+|[0-9]+\.[0-9]*)([eE][-+]?[0-9]+)?$|^[-+]?[0-9]+[eE][-+]?[0-9]+$"
        r"|^[-+]?\.(inf|Inf)$|^\.(nan|NaN)$"
    ),
    list("-+0123456789."),
)


class _Dumper(yaml.SafeDumper):
    """Quotes every text that this Loader, or anybody's, would read as something else."""


_Dumper.yaml_implicit_resolvers = {
    first: yaml.SafeDumper.yaml_implicit_resolvers.get(first, [])
    + _Loader.yaml_implicit_resolvers.get(first, [])
    for first in {*yaml.SafeDumper.yaml_implicit_resolvers, *_Loader.yaml_implicit_resolvers}
}


def _write_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    """Escape what is no visible letter: other styles lose some of it."""
    style = None if text.isprintable() else '"'
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


_Dumper.add_representer(str, _write_text)


def load_yaml(text: str, where: str) -> Any:
    """Read YAML text into plain data; `where` names it in errors."""
    try:
        return yaml.load(text, Loader=_Loader)  # noqa: S506 (a SafeLoader: it makes plain data only)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise ConfigError(f"{where} is not valid YAML: {reason}") from None


def dump_yaml(values: Mapping[str, Any]) -> str:
    """Write plain data as YAML, keys in their order."""
    return yaml.dump(dict(values), Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
