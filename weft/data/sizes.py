"""Refuse absurd sizes before anything is allocated."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from weft.core.errors import DataError


def memory_free() -> int:
    """Return the bytes of memory free now (all of the machine's where the system does not say)."""
    names = os.sysconf_names
    pages = os.sysconf("SC_AVPHYS_PAGES" if "SC_AVPHYS_PAGES" in names else "SC_PHYS_PAGES")
    return pages * os.sysconf("SC_PAGE_SIZE")


def refuse_absurd(size: int, what: str, way_out: str) -> None:
    """Raise DataError where `what` would take more memory than is free."""
    free = memory_free()
    if size > free:
        room = f"{free / 1e9:,.1f} GB of memory is free"
        raise DataError(f"{what} would take {size / 1e9:,.1f} GB, but {room}. {way_out}")


def refuse_full(size: int, folder: Path, what: str) -> None:
    """Raise DataError where `what` would not fit on the disk of `folder`."""
    there = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(there).free
    if size > free:
        room = f"{free / 1e9:,.1f} GB is free"
        raise DataError(f"{what} would take {size / 1e9:,.1f} GB of disk, but {room}. Ask for less.")
