"""Lines of text files, one at a time: what is cleaned is counted, what is broken is refused by number."""

from __future__ import annotations

import lzma
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from gzip import GzipFile
from io import BufferedIOBase
from pathlib import Path
from typing import NamedTuple, cast

from weft.core.errors import DataError

MAX_LINE = 1 << 20
_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")
_BROKEN = (
    OSError,
    EOFError,
    lzma.LZMAError,
    zlib.error,
    zipfile.BadZipFile,
    RuntimeError,  # of zipfile: a password is wanted, or a compression is not known
)


@dataclass
class LineCounts:
    """What was cleaned or left out while reading."""

    lines: int = 0
    bom: int = 0
    carriage_returns: int = 0
    blank: int = 0
    joined: int = 0
    duplicates: int = 0

    def clear(self) -> None:
        """Set every count to zero."""
        self.__init__()

    def summary(self) -> str:
        """Return the counts above zero as words, empty when nothing was cleaned."""
        words = {
            "bom": "byte order marks stripped",
            "carriage_returns": "final CR stripped",
            "blank": "blank lines left out",
            "joined": "lists joined by a space",
            "duplicates": "repeated inputs left out",
        }
        return ", ".join(
            f"{getattr(self, key):,} {text}" for key, text in words.items() if getattr(self, key)
        )


class Fault(NamedTuple):
    """One broken line; line 0 is the whole file."""

    path: str
    line: int
    message: str

    def __str__(self) -> str:
        return (
            f"{self.path}, line {self.line}: {self.message}" if self.line else f"{self.path} {self.message}"
        )


Refuse = Callable[[Path, int, str], None]


class _Broken(str):
    """Stands for a line that was refused where reading goes on."""


BROKEN = _Broken()


def refuse(path: Path, line: int, message: str) -> None:
    """Raise DataError naming the file, the line and the fault."""
    raise DataError(str(Fault(str(path), line, message)))


@dataclass
class FaultList:
    """Collects faults instead of raising, so that one pass finds every bad line."""

    faults: list[Fault] = field(default_factory=list)

    def __call__(self, path: Path, line: int, message: str) -> None:
        self.faults.append(Fault(str(path), line, message))


def read_lines(
    path: Path,
    max_line: int = MAX_LINE,
    counts: LineCounts | None = None,
    refuse: Refuse = refuse,
    skip_long: bool = True,
) -> Iterator[tuple[int, str]]:
    r"""Yield (number, text) of each line of a UTF-8 file. `\n` ends a line and nothing else does.

    A byte order mark and one final CR a line are stripped and counted. A broken line goes to
    `refuse`; where that returns, the line is read as BROKEN, and with `skip_long=False` an over-long
    one is the last. Memory: one line of `max_line` bytes.
    """
    counts = counts or LineCounts()
    number, blank = 0, True
    with open_bytes(path) as stream:
        for number, text in stream_lines(stream, path, max_line, counts, refuse, skip_long):
            blank = blank and text is not BROKEN and not text.strip()
            yield number, text
    if blank:
        state = "holds only whitespace" if number else "is empty"
        refuse(path, 0, f"{state}. Give a file with at least one item.")


def stream_lines(
    stream: BufferedIOBase,
    path: Path,
    max_line: int = MAX_LINE,
    counts: LineCounts | None = None,
    refuse: Refuse = refuse,
    skip_long: bool = True,
) -> Iterator[tuple[int, str]]:
    """Yield the lines of an open stream in the same way, blank or not; `path` names it in errors."""
    counts = counts or LineCounts()
    for number, start, raw in _raw_lines(stream, path, max_line, refuse, skip_long):
        text = BROKEN if raw is None else _decode(_strip(raw, start, counts), start, path, number, refuse)
        counts.lines += 1
        yield number, text


def _raw_lines(
    stream: BufferedIOBase, path: Path, max_line: int, refuse: Refuse, skip_long: bool
) -> Iterator[tuple[int, int, bytes | None]]:
    """Yield (number, byte offset, bytes) of each line; an over-long one is refused, then comes as None."""
    offset, number = 0, 0
    while raw := _read(stream, path, max_line + len(_BOM) + 2):
        number += 1
        start, offset = offset, offset + len(raw)
        if len(raw.removeprefix(_BOM).removesuffix(b"\n").removesuffix(b"\r")) > max_line:
            limit = f"`data.max_line` ({max_line:,} bytes)"
            refuse(path, number, f"is longer than {limit}. Raise data.max_line, or break the line.")
            yield number, start, None
            if not skip_long:
                return
            offset += _skip_line(stream, path, raw)
        else:
            yield number, start, raw


def _read(stream: BufferedIOBase, path: Path, size: int) -> bytes:
    try:
        return stream.readline(size)
    except _BROKEN as error:
        raise DataError(
            f"{path} is damaged or cut short ({_reason(error)}). Fetch or pack it again."
        ) from None


def _skip_line(stream: BufferedIOBase, path: Path, raw: bytes) -> int:
    """Read on to the end of the line in hand; return how many bytes that took."""
    skipped = 0
    while raw and not raw.endswith(b"\n"):
        raw = _read(stream, path, 1 << 16)
        skipped += len(raw)
    return skipped


def _strip(raw: bytes, start: int, counts: LineCounts) -> bytes:
    if start == 0 and raw.startswith(_BOM):
        counts.bom += 1
        raw = raw[len(_BOM) :]
    raw = raw.removesuffix(b"\n")
    if raw.endswith(b"\r"):
        counts.carriage_returns += 1
        raw = raw[:-1]
    return raw


def _decode(raw: bytes, start: int, path: Path, number: int, refuse: Refuse) -> str:
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        refuse(path, number, _bad_utf8(raw, start, error))
        return BROKEN
    if "\0" in text:
        refuse(path, number, f"holds a NUL byte (offset {start + raw.index(0)}). Is this a text file?")
        return BROKEN
    if "\r" in text:
        at = start + raw.index(b"\r")
        refuse(
            path,
            number,
            rf"holds a CR that ends no line (offset {at}). End lines with \n, not with \r alone.",
        )
        return BROKEN
    return text


def _bad_utf8(raw: bytes, start: int, error: UnicodeDecodeError) -> str:
    if start == 0 and raw.startswith(_UTF16):
        return "is UTF-16. Convert it: iconv -f UTF-16 -t UTF-8."
    byte = raw[error.start]
    return f"is not UTF-8: byte 0x{byte:02x} at offset {start + error.start}. Convert the file to UTF-8."


@contextmanager
def open_bytes(path: Path) -> Iterator[BufferedIOBase]:
    """Open a file for reading, unpacking .gz, .xz and a .zip's member (`a.zip` with one, `a.zip/name`)."""
    path = Path(path)
    archive, member = split_archive(path)
    try:
        stream = _open_member(archive, member) if archive else _open_plain(path)
    except IsADirectoryError:
        raise DataError(f"{path} is a folder. Give a file, or data.format=label_files.") from None
    except _BROKEN as error:
        raise DataError(f"{path} cannot be opened ({_reason(error)}).") from None
    with stream:
        yield stream


def _open_plain(path: Path) -> BufferedIOBase:
    if path.suffix == ".gz":
        return GzipFile(path)
    if path.suffix == ".xz":
        return lzma.open(path)
    return path.open("rb")


def _open_member(archive: Path, member: str | None) -> BufferedIOBase:
    names = archive_members(archive)
    if member is None and len(names) != 1:
        raise DataError(
            f"{archive} holds {len(names)} files. Name one: {archive}/{names[0] if names else 'NAME'}."
        )
    if member is not None and member not in names:
        raise DataError(f"{archive} holds no file `{member}`. It holds: {', '.join(names[:8])}.")
    return cast(BufferedIOBase, zipfile.ZipFile(archive).open(member or names[0]))


def split_archive(path: Path) -> tuple[Path | None, str | None]:
    """Return the .zip a path goes through and the member it names, (None, None) for a plain path."""
    path = Path(path)
    for parent in (path, *path.parents):
        if parent.suffix == ".zip" and parent.is_file():
            inner = path.relative_to(parent).as_posix()
            return parent, None if inner == "." else inner
    return None, None


def archive_members(archive: Path) -> list[str]:
    """Return the names of the files in a .zip, sorted, without hidden ones."""
    try:
        with zipfile.ZipFile(archive) as opened:
            names = [name for name in opened.namelist() if not name.endswith("/")]
    except _BROKEN as error:
        raise DataError(f"{archive} is not a readable .zip ({_reason(error)}).") from None
    return sorted(
        name for name in names if not name.split("/")[-1].startswith(".") and "__MACOSX" not in name
    )


def _reason(error: BaseException) -> str:
    return getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
