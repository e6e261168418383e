"""`weft recipes`, and finding a recipe by its name or path."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from weft.core.errors import ConfigError, nearest

FOLDER = Path(__file__).resolve().parents[1] / "recipes"


def recipes(
    words: Annotated[list[str] | None, typer.Argument(metavar="[show NAME]", show_default=False)] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the recipes that come with weft, or show one.

    Train one with `weft train NAME`; begin one's own with `weft recipes show NAME > mine.yaml`.
    """
    if not words:
        list_recipes(json)
    elif words[0] == "show" and len(words) == 2:
        print(find(words[1]).read_text(encoding="utf-8"), end="")
    else:
        raise ConfigError(f"`{' '.join(words)}` means nothing here. Say: weft recipes show {words[-1]}")


def list_recipes(json: bool) -> None:
    """Print each recipe's name and the first line of its comment."""
    from weft.cli.printing import print_json, print_table

    found = {name: lead(path) for name, path in shipped().items()}
    if json:
        print_json([{"name": name, "about": about} for name, about in found.items()])
    else:
        print_table(("recipe", "about"), list(found.items()))


def shipped() -> dict[str, Path]:
    """Return the recipes of the package: `task/name` -> file."""
    files = sorted(FOLDER.glob("*/*.yaml"))
    return {path.relative_to(FOLDER).with_suffix("").as_posix(): path for path in files}


def lead(path: Path) -> str:
    """Return the first line of a recipe's comment."""
    lines = (line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("#"))
    return next(lines, "").lstrip("# ").rstrip()


def find(name: str) -> Path:
    """Return the file of a recipe: a path, or the name of a shipped one."""
    known, path = shipped(), Path(name)
    if name in known:
        return known[name]
    if path.suffix in (".yaml", ".yml"):
        if path.is_file():
            return path
        raise ConfigError(f"There is no recipe file `{name}`.{nearest(name, _beside(path))}")
    if path.exists():
        raise ConfigError(
            f"`{name}` is no recipe (NAME.yaml). If it holds data: weft train data.train={name} task=TASK"
        )
    raise ConfigError(f"There is no recipe `{name}`.{nearest(name, known)} `weft recipes` lists them.")


def _beside(path: Path) -> list[str]:
    """Return the recipe files in a path's folder."""
    return [str(other) for other in path.parent.glob("*.y*ml")] if path.parent.is_dir() else []


def load(name: str) -> dict[str, Any]:
    """Read a recipe into plain sections."""
    from weft.core.text import load_yaml

    path = find(name)
    try:
        values = load_yaml(path.read_text(encoding="utf-8"), str(path))
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path} is not UTF-8 (byte {error.start}). Convert the file.") from None
    if not isinstance(values, Mapping):
        raise ConfigError(f"A recipe must be keys and values, but {path} holds {str(values)[:40]!r}.")
    return dict(values)
