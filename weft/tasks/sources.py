"""The data section, and the parts it names: train, valid, test."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from weft.core.config import option
from weft.core.errors import ConfigError
from weft.data import FieldOptions, Limits, PositionRows, ReadOptions, Rows, RowSource, SplitRows

PARTS = ("train", "valid", "test")

View = Callable[[Rows, str, tuple[float, ...]], Rows]  # (source, part, shares) -> the rows of that part


@dataclass(frozen=True)
class DataConfig(ReadOptions, FieldOptions, Limits):
    """Section `data`: which files, how they are read, how values become numbers, what is cut."""

    train: tuple[str, ...] = option((), "training file; two for parallel text")
    valid: tuple[str, ...] = option((), "validation file; without one a part of the training file")
    test: tuple[str, ...] = option(
        (), "test file; without one, and without a validation file, a part of the training file"
    )
    split: str = option(
        "hash",
        "how parts without a file are taken: by a hash of the input (equal inputs stay together) or position",
        choices=("hash", "position"),
    )
    fractions: tuple[float, ...] = option(
        (0.8, 0.1, 0.1), "shares of train, valid and test where they have no file", low=0, high=1
    )

    def share(self, kind: type) -> Any:
        """Return this section's share that belongs to `kind` (ReadOptions, FieldOptions or Limits)."""
        return kind(**{f.name: getattr(self, f.name) for f in dataclasses.fields(kind)})


@dataclass(frozen=True)
class Parts:
    """The rows of each part; a part may be absent."""

    train: Rows | None
    valid: Rows | None
    test: Rows | None


def open_parts(
    config: DataConfig,
    schema: Mapping[str, str],
    memory: Mapping[str, Any] | None = None,
    by_position: View = PositionRows,
) -> Parts:
    """Open the parts a configuration names; those without a file are taken from the training file.

    Without a validation file a share of the training file is taken for it, and one for the test if
    that has no file either. With a validation file the training file stays whole, tested or not.
    `by_position` is how a task cuts a source where `data.split` is position.
    """
    own: dict[str, Rows | None] = {name: _open(config, name, schema, memory or {}) for name in PARTS}
    train, missing = own["train"], [name for name in ("valid", "test") if own[name] is None]
    if train is None or "valid" not in missing:
        return Parts(**own)
    views: dict[str, View] = {"hash": SplitRows, "position": by_position}
    view = views[config.split]
    shares = _shares(config.fractions, missing)
    for name in ("train", *missing):
        share = shares[PARTS.index(name)]
        own[name] = view(train, name, shares) if share > 0 else None
    return Parts(**own)


def _shares(fractions: tuple[float, ...], missing: list[str]) -> tuple[float, ...]:
    """Give the share of a part with a file of its own to training."""
    if len(fractions) != 3:
        raise ConfigError(f"`data.fractions` must be three shares, but is {fractions}. Try 0.8,0.1,0.1.")
    _, valid, test = fractions
    valid, test = (valid if "valid" in missing else 0.0), (test if "test" in missing else 0.0)
    return (round(sum(fractions) - valid - test, 9), valid, test)


def _open(
    config: DataConfig, name: str, schema: Mapping[str, str], memory: Mapping[str, Any]
) -> RowSource | None:
    kinds, options = tuple(schema.values()), config.share(ReadOptions)
    if memory.get(name) is not None:
        return RowSource.from_memory(memory[name], kinds, options)
    paths = getattr(config, name)
    return RowSource(paths, options, kinds) if paths else None
