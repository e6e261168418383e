"""Lines: what is cleaned is counted, what is broken is named by file, line and byte."""

import gzip
import io
import lzma
import time
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from weft.core.errors import DataError
from weft.data import lines
from weft.data.lines import BROKEN, FaultList, LineCounts, read_lines, stream_lines


def write(tmp_path, content: bytes, name="a.txt"):
    path = tmp_path / name
    path.write_bytes(content)
    return path


def texts(path, **options):
    return [text for _, text in read_lines(path, **options)]


def test_lines_are_numbered_from_one(tmp_path):
    assert list(read_lines(write(tmp_path, b"a\n\nb"))) == [(1, "a"), (2, ""), (3, "b")]


def test_only_a_newline_ends_a_line(tmp_path):
    content = "a\u2028b\u2029c\x0bd\x0ce\x1cf\x1dg\x1eh\x85i\nj\n"
    assert texts(write(tmp_path, content.encode())) == [content[:-3], "j"]


def test_a_mark_and_final_returns_are_stripped_and_counted(tmp_path):
    counts = LineCounts()
    path = write(tmp_path, b"\xef\xbb\xbfa\r\nb\r\nc\r")
    assert texts(path, counts=counts) == ["a", "b", "c"]
    assert (counts.bom, counts.carriage_returns, counts.lines) == (1, 3, 3)
    assert counts.summary() == "1 byte order marks stripped, 3 final CR stripped"


def test_a_mark_later_in_the_file_is_content(tmp_path):
    assert texts(write(tmp_path, "a\n\ufeffb\n".encode())) == ["a", "\ufeffb"]


@pytest.mark.parametrize("name", ["a.txt.gz", "a.txt.xz", "a.zip", "plain"])
def test_packed_files_read_the_same(tmp_path, name):
    path, content = tmp_path / name, "ä\nb\n".encode()
    if name == "a.zip":
        with zipfile.ZipFile(path, "w") as archive:
            archive.writestr("inner/a.txt", content)
    else:
        pack = {"gz": gzip.compress, "xz": lzma.compress}.get(name[-2:], bytes)
        path.write_bytes(pack(content))
    assert texts(path) == ["ä", "b"]


def test_a_member_of_an_archive_is_a_path(tmp_path):
    path = tmp_path / "two.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("d/a.txt", "first\n")
        archive.writestr("d/b.txt", "second\n")
    assert texts(path / "d" / "b.txt") == ["second"]
    with pytest.raises(DataError, match=r"two\.zip holds 2 files\. Name one: .*two\.zip/d/a\.txt"):
        texts(path)
    with pytest.raises(DataError, match=r"holds no file `d/c\.txt`\. It holds: d/a\.txt, d/b\.txt"):
        texts(path / "d" / "c.txt")


BROKEN_FILES = {
    "not UTF-8": (b"ok\nab\xffc\n", r"a\.txt, line 2: is not UTF-8: byte 0xff at offset 5\. Convert"),
    "cut inside a letter": (b"ok\nab\xc3\n", r"line 2: is not UTF-8: byte 0xc3 at offset 5"),
    "UTF-16": ("ab\n".encode("utf-16-le").join([b"\xff\xfe", b""]), r"line 1: is UTF-16\. Convert it: iconv"),
    "NUL": (b"ok\na\0b\n", r"line 2: holds a NUL byte \(offset 4\)"),
    "lone CR": (b"ok\na\rb\n", r"line 2: holds a CR that ends no line \(offset 4\)\. End lines with"),
    "two CR at the end": (b"a\r\r\n", r"line 1: holds a CR that ends no line \(offset 1\)"),
    "old line ends": (b"a\rb\rc\r", r"line 1: holds a CR that ends no line"),
    "empty": (b"", r"a\.txt is empty\. Give a file with at least one item"),
    "only a mark": (b"\xef\xbb\xbf", r"a\.txt holds only whitespace"),
    "only whitespace": (b" \n\t\n \xe2\x80\xa8 \n", r"a\.txt holds only whitespace"),
    "a long line": (
        b"ok\n" + b"x" * 101 + b"\n",
        r"line 2: is longer than `data\.max_line` \(100 bytes\)\. Raise",
    ),
}


@pytest.mark.parametrize("what", BROKEN_FILES)
def test_a_broken_file_is_refused_by_line(tmp_path, what):
    content, message = BROKEN_FILES[what]
    with pytest.raises(DataError, match=message) as caught:
        texts(write(tmp_path, content), max_line=100)
    assert "\n" not in str(caught.value)


def test_the_offset_counts_the_mark_and_the_returns(tmp_path):
    with pytest.raises(DataError, match="offset 7"):
        texts(write(tmp_path, b"\xef\xbb\xbfa\r\nb\xff\n"))


@pytest.mark.parametrize("ending", [b"\n", b"\r\n", b""])
def test_a_line_of_exactly_the_limit_passes(tmp_path, ending):
    assert texts(write(tmp_path, b"\xef\xbb\xbf" + b"x" * 100 + ending), max_line=100) == ["x" * 100]


def test_every_broken_line_is_found_where_reading_goes_on(tmp_path):
    faults = FaultList()
    path = write(tmp_path, b"a\n\xff\nb\n" + b"x" * 500 + b"\nc\0\nd\n")
    found = texts(path, refuse=faults, max_line=100)
    assert [text for text in found if text is not BROKEN] == ["a", "b", "d"]
    assert [fault.line for fault in faults.faults] == [2, 4, 5]
    assert "offset 508" in faults.faults[2].message  # 2 + 2 + 2 + 501 + 1


class Endless(io.RawIOBase):
    """A gigabyte of one line, made as it is read."""

    def __init__(self, size: int):
        self.left = size

    def readable(self) -> bool:
        return True

    def readinto(self, buffer) -> int:
        count = min(len(buffer), self.left)
        buffer[:count] = b"x" * count
        self.left -= count
        return count


@pytest.mark.parametrize("skip_long", [True, False])
def test_a_huge_line_is_refused_in_little_memory_and_time(tmp_path, monkeypatch, skip_long):
    stream = io.BufferedReader(Endless(100_000_000))
    monkeypatch.setattr(lines, "_open_plain", lambda path: stream)
    faults = FaultList()
    tracemalloc.start()
    start = time.perf_counter()
    assert texts(tmp_path / "x", refuse=faults, skip_long=skip_long) == [BROKEN]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert [fault.line for fault in faults.faults] == [1]
    assert peak < 8_000_000
    assert time.perf_counter() - start < 5


DAMAGED_ARCHIVES = {
    "cut.gz": gzip.compress(b"abc\n" * 999)[:40],
    "other.gz": b"no gzip at all",
    "cut.xz": lzma.compress(b"abc\n" * 999)[:60],
    "other.xz": b"no xz at all",
}


@pytest.mark.parametrize("name", DAMAGED_ARCHIVES)
def test_a_damaged_archive_is_refused(tmp_path, name):
    with pytest.raises(DataError, match=rf"{name} is damaged or cut short"):
        texts(write(tmp_path, DAMAGED_ARCHIVES[name], name))


def test_what_is_no_zip_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"a\.zip is not a readable \.zip"):
        texts(write(tmp_path, b"no zip at all", "a.zip"))


def test_a_damaged_member_is_refused(tmp_path):
    path = tmp_path / "a.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "hello world\n" * 100)
    content = bytearray(path.read_bytes())
    content[200] ^= 255
    path.write_bytes(bytes(content))
    with pytest.raises(DataError, match=r"a\.zip is damaged or cut short"):
        texts(path)


def test_a_folder_is_refused(tmp_path):
    with pytest.raises(DataError, match=r"is a folder\. Give a file, or data\.format=label_files"):
        texts(tmp_path)


def test_a_stream_is_read_like_a_file_but_may_be_empty():
    found = stream_lines(io.BytesIO(b"\xef\xbb\xbfa\r\n\nb"), Path("stdin"))
    assert list(found) == [(1, "a"), (2, ""), (3, "b")]
    assert list(stream_lines(io.BytesIO(b""), Path("stdin"))) == []
    with pytest.raises(DataError, match="stdin, line 2: is not UTF-8: byte 0xff at offset 2"):
        list(stream_lines(io.BytesIO(b"a\n\xff"), Path("stdin")))
