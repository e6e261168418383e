"""Whatever ends a verb becomes one line on stderr and an exit code."""

from __future__ import annotations

import errno
import os
import select
import signal
import sys
import tempfile
import traceback
from collections.abc import Callable
from types import FrameType
from typing import Any

from weft.core.errors import EXIT_CODES, InputError, Interrupted, ResourceError, WeftError


def guard(program: Callable[[], Any]) -> int:
    """Run `program` and return its exit code; nothing it raises reaches the user as a traceback."""
    _watch_signals()
    try:
        code = program()
        sys.stdout.flush()
        return code if isinstance(code, int) else EXIT_CODES["done"]
    except BaseException as error:
        return report(error)


def report(error: BaseException) -> int:
    """Say in one line what happened and return the exit code it means."""
    if isinstance(error, SystemExit) and isinstance(error.__context__, BrokenPipeError):
        error = error.__context__  # the parser of the command line made an exit of it
    if isinstance(error, SystemExit):
        return _exit_code(error)
    if isinstance(error, BrokenPipeError) and (_reader_left() or _leads_nowhere()):
        return EXIT_CODES["done"]
    known = error if isinstance(error, WeftError) else translate(error)
    if known is None:
        known = WeftError(
            f"{_summary(error)} This is a bug of weft; the full report is in {write_log(error)}."
        )
    line = " ".join(str(known).split())
    print(f"weft: {line}", file=sys.stderr)
    return known.exit_code


def translate(error: BaseException) -> WeftError | None:
    """Return what a foreign exception means in the tree of weft's errors; None for a bug."""
    if isinstance(error, KeyboardInterrupt):
        return Interrupted("Interrupted.", signal.SIGINT)
    if type(error).__name__ == "NoArgsIsHelpError":  # its message is the help, which is printed by now
        return InputError("A verb is missing. See `weft --help`.")
    message = getattr(error, "format_message", None)
    if message is not None:  # the command line's own errors
        return InputError(f"{message()} See `weft --help`.")
    if _is_out_of_memory(error):
        return ResourceError(f"Memory does not suffice: {_summary(error)} Try a smaller model or batch.")
    if isinstance(error, OSError):
        return _translate_os_error(error)
    return None


def write_log(error: BaseException) -> str:
    """Write the traceback to a fresh file and return its path."""
    handle, path = tempfile.mkstemp(prefix="weft-", suffix=".log")
    with os.fdopen(handle, "w", encoding="utf-8") as log:
        log.write(f"$ {' '.join(sys.argv)}\n")
        traceback.print_exception(error, file=log)
    return path


_FULL = (errno.ENOSPC, errno.EDQUOT)
_PLACE = (errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP)
_PATH = (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError)


def _translate_os_error(error: OSError) -> WeftError | None:
    where = f" `{error.filename}`" if error.filename else ""
    if error.errno in _FULL:
        return ResourceError(f"The disk is full{where and f' while writing{where}'}. Free some space.")
    if error.filename and (isinstance(error, _PATH) or error.errno in _PLACE):
        return InputError(f"Cannot use{where}: {(error.strerror or 'no reason given').lower()}.")
    return None


def _is_out_of_memory(error: BaseException) -> bool:
    """Recognise torch's errors by name and text, so that torch need not be imported."""
    name = type(error).__name__
    return isinstance(error, MemoryError) or name == "OutOfMemoryError" or "not enough memory" in str(error)


def _summary(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    text = f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return text if text.endswith(".") else f"{text}."


def _exit_code(error: SystemExit) -> int:
    if error.code is None or isinstance(error.code, int):
        return error.code or 0
    print(error.code, file=sys.stderr)
    return EXIT_CODES["our bug"]


def _reader_left() -> bool:
    """Tell whether stdout's reader has gone (`weft … | head`), and if so write nothing more there."""
    poll = select.poll()
    poll.register(sys.stdout.fileno(), select.POLLOUT)
    left = any(event & (select.POLLERR | select.POLLHUP) for _, event in poll.poll(0))
    if left:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return left


def _leads_nowhere() -> bool:
    """Tell whether stdout is devnull, as the printer of the help makes it when its reader has gone."""
    return os.path.samestat(os.fstat(sys.stdout.fileno()), os.stat(os.devnull))


_STOPPING = {signal.SIGINT: "Interrupted.", signal.SIGTERM: "Terminated."}
_IMPORTER = "<frozen importlib._bootstrap>"


def _watch_signals() -> None:
    """Let a signal end the work in one line, unless whoever started it has it ignored."""
    for number in _STOPPING:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)


def _stop(number: int, frame: FrameType | None) -> None:
    """End the work; in the middle of an import, which may swallow what is raised or abort, just leave."""
    stopped = Interrupted(_STOPPING[signal.Signals(number)], number)
    if _importing(frame):
        os._exit(report(stopped))
    raise stopped


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_filename == _IMPORTER:
            return True
        frame = frame.f_back
    return False
