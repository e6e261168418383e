"""Write files so that they are there after a crash, or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from weft.core.errors import ResourceError

FULL = (errno.ENOSPC, errno.EDQUOT)  # the disk, or the user's share of it
_BLOCK = 1 << 20


@dataclass(frozen=True)
class Digest:
    """What a file's bytes are known by."""

    sha256: str
    size: int


def write_file(path: Path, chunks: Iterable[bytes | memoryview]) -> Digest:
    """Write chunks to a new file, wait until the disk has them, and return their digest."""
    digest, size = hashlib.sha256(), 0
    with open(path, "wb") as file:
        for chunk in chunks:
            file.write(chunk)
            digest.update(chunk)
            size += len(chunk)
        sync(file)
    return Digest(digest.hexdigest(), size)


def sync(file: IO[Any]) -> None:
    """Flush an open file to the disk itself."""
    file.flush()
    os.fsync(file.fileno())


def digest_file(path: Path) -> Digest:
    """Return the digest of a file, read in blocks."""
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
            size += len(block)
    return Digest(digest.hexdigest(), size)


def place(path: Path, writer: Callable[[Path], object]) -> None:
    """Let `writer` fill a temporary file, then give it its name in one move."""
    temporary = path.with_name(f".{path.name}.part")
    try:
        writer(temporary)
        with open(temporary, "rb+") as file:
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def replace_file(path: Path, data: bytes) -> None:
    """Give the file `path` new content in one move: readers see the old bytes or the new."""
    place(path, lambda temporary: write_file(temporary, [data]))


def sync_folder(folder: Path) -> None:
    """Make the names inside a folder durable, where the file system can."""
    with suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)


@contextmanager
def room_for(needed: int, what: str, folder: Path, kept: str = "") -> Iterator[None]:
    """Turn a full disk inside the block into one line: what was written, bytes needed, bytes free."""
    try:
        yield
    except OSError as error:
        if error.errno not in FULL:
            raise
        free = shutil.disk_usage(folder).free
        raise ResourceError(
            f"The disk is full: {what} in {folder} needs {needed:,} bytes, but {free:,} are free. "
            f"{kept}Free some space, then go on with `weft train --resume`."
        ) from None
