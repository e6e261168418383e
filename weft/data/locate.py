"""Find a data file by name."""

from __future__ import annotations

import difflib
import os
from pathlib import Path

from weft.core.errors import DataError
from weft.data.lines import split_archive

SYNTHETIC = ("dates", "adding", "copy", "reverse")  # folders that `weft data make` writes


class DataMissing(DataError):
    """A named data file is in none of the places looked at."""


def locate(name: str | Path) -> Path:
    """Return the path of a data file: as given, or in $WEFT_DATA, ./data or ../shared/data.

    `archive.zip` and `archive.zip/member` are names too.
    """
    if not str(name).strip():
        raise DataMissing("A data file must have a name, but it is empty.")
    places = _places(Path(name))
    for place in places:
        if place.exists() or split_archive(place)[0]:
            return place
    looked = ", ".join(str(place.parent) for place in places)
    hint = (
        _synthetic(name)
        or _similar(places)
        or " Give its path, or set WEFT_DATA to the folder that holds it."
    )
    raise DataMissing(f"There is no file `{name}`. Looked in: {looked}.{hint}")


def _places(name: Path) -> list[Path]:
    if name.is_absolute():
        return [name]
    given = os.environ.get("WEFT_DATA")
    roots = ([Path(given)] if given else []) + [Path("data"), Path("../shared/data")]
    return [name, *(root / name for root in roots)]


def _synthetic(name: str | Path) -> str:
    """Say how a data set that can be made is made."""
    folder = next(iter(Path(name).parts), "")
    return f" Make it: weft data make {folder}." if folder in SYNTHETIC else ""


def _similar(places: list[Path]) -> str:
    """Name the file beside a missing one that is spelt most like it."""
    for place in places:
        names = [entry.name for entry in place.parent.iterdir()] if place.parent.is_dir() else []
        close = difflib.get_close_matches(place.name, names, n=1, cutoff=0.8)
        if close:
            return f" Did you mean `{place.parent / close[0]}`?"
    return ""
