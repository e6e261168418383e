"""One training a folder: a lock the system gives back when its holder dies."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from weft.core.errors import InputError

NAME = ".lock"


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Hold the folder's lock inside the block; refuse when a living process holds it.

    The lock belongs to the open file, not to the file's being there: a process that was killed
    leaves the file but no lock, and the next one takes it over.
    """
    handle = os.open(folder / NAME, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        _take(handle, folder)
        os.ftruncate(handle, 0)
        os.pwrite(handle, f"process {os.getpid()} on {socket.gethostname()}\n".encode(), 0)
        yield
        os.ftruncate(handle, 0)
    finally:
        os.close(handle)


def _take(handle: int, folder: Path) -> None:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.pread(handle, 200, 0).decode(errors="replace").strip() or "another process"
        raise InputError(
            f"A run is trained by one process at a time, but {folder} is being trained by {holder}. "
            "Wait for it, or choose another `run=`."
        ) from None
    except OSError:
        return  # a file system without locks: train all the same
