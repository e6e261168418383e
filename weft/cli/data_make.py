"""What `weft data make` writes, and where."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.core.config import option, parse
from weft.core.errors import ConfigError
from weft.data.synthetic import make, makers


@dataclass(frozen=True)
class MakeOptions:
    """How large the set is, its chance, and its place."""

    n: int = option(10_000, "training items", low=1)
    held_out: int | None = option(None, "items of valid and of test each; default n / 10", low=1)
    length: int | None = option(None, "longest item; adding: the length of every item", low=1)
    seed: int = option(1, "where chance starts", low=0)
    folder: str | None = option(None, "folder that is written; default data/NAME")


def make_files(name: str, settings: dict[str, Any], force: bool) -> dict[str, Path]:
    """Write the set `name` and return the file of each part."""
    options = parse(MakeOptions, settings, "")
    makers[name]  # an unknown name is refused before its folder is looked at
    folder = Path(options.folder or f"data/{name}")
    if not force and folder.is_dir() and any(folder.iterdir()):
        raise ConfigError(f"`{folder}` is not empty. Name another (folder=), or write over it with --force.")
    return make(name, options.n, options.seed, folder, held_out=options.held_out, length=options.length)
