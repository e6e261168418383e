"""`best` and `last`: relative links to a checkpoint, or a file with the path where links are impossible."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from weft.runs.storage import replace_file, sync_folder


def write(run: Path, name: str, target: Path | None) -> None:
    """Let `run/name` mean the folder `target`; None removes it."""
    pointer = run / name
    if pointer.is_dir() and not pointer.is_symlink():
        shutil.rmtree(pointer)  # a copy of the run that followed its links
    if target is None:
        pointer.unlink(missing_ok=True)
        return
    relative = os.path.relpath(target, run)
    try:
        _link(pointer, relative)
    except OSError:
        replace_file(pointer, relative.encode())


def read(run: Path, name: str) -> Path | None:
    """Return the folder `run/name` means, or None where it means none that exists."""
    pointer = run / name
    if pointer.is_symlink():
        target = run / os.readlink(pointer)
    elif pointer.is_file():
        target = run / pointer.read_text(encoding="utf-8").strip()
    else:
        target = pointer
    return target if target.is_dir() else None


def _link(pointer: Path, relative: str) -> None:
    temporary = pointer.with_name(f".{pointer.name}.part")
    temporary.unlink(missing_ok=True)
    os.symlink(relative, temporary)
    os.replace(temporary, pointer)
    sync_folder(pointer.parent)
