"""Opening a run with the settings a verb allows."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from weft.core.config import nearest_key
from weft.core.errors import ConfigError

if TYPE_CHECKING:
    from weft.api.run import Run

USING = ("device", "threads", "batch", "decoding")  # what may change after training

SEARCH = {  # decoding keys that only one method looks at
    "beam": ("beam", "length_penalty", "nbest"),
    "sample": ("temperature", "top_k", "top_p", "min_p", "seed", "samples"),
}


def open_with(path: str, checkpoint: str, overrides: Mapping[str, Any], allowed: Iterable[str]) -> Run:
    """Open a run; refuse settings that could not change what its model does."""
    from weft.api.run import open_run

    check_keys(overrides, tuple(allowed))
    run = open_run(path, checkpoint, **overrides)
    decoding = overrides.get("decoding", {})
    check_search(decoding if isinstance(decoding, Mapping) else {}, run.settings.decoding.method)
    return run


def check_keys(overrides: Mapping[str, Any], allowed: tuple[str, ...]) -> None:
    """Refuse sections, and keys of the data section, that training has settled."""
    for key in overrides:
        if key not in allowed:
            raise ConfigError(
                f"`{key}` is settled by training. Free here: {', '.join(allowed)}.{_meant(key, allowed)}"
            )
    if isinstance(overrides.get("data"), Mapping):
        _check_data(overrides["data"])


def _meant(key: str, allowed: tuple[str, ...]) -> str:
    """Tell somebody who wrote `beam=5` where that key lives."""
    from weft.decoding import DecodingConfig

    names = {field.name for field in dataclasses.fields(DecodingConfig)}
    return f" Did you mean `decoding.{key}`?" if key in names and "decoding" in allowed else ""


def _check_data(values: Mapping[str, Any]) -> None:
    from weft.data import FieldOptions
    from weft.tasks import DataConfig

    settled = {field.name for field in dataclasses.fields(FieldOptions)}
    known = [field.name for field in dataclasses.fields(DataConfig) if field.name not in settled]
    for key in values:
        if key in settled:
            raise ConfigError(
                f"`data.{key}` is settled by training: the run has its vocabulary. Leave it out."
            )
        if key not in known:
            raise ConfigError(f"There is no key `data.{key}`.{nearest_key('data', key, known)}")


def check_search(changes: Mapping[str, Any], method: str) -> None:
    """Refuse a key of the search that the chosen method would not look at."""
    for other, keys in SEARCH.items():
        idle = [key for key in keys if key in changes]
        if idle and method != other:
            raise ConfigError(
                f"`decoding.{idle[0]}` belongs to method {other}, but `decoding.method` is {method}. "
                f"Add decoding.method={other}."
            )
