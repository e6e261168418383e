"""Writes that are there after a crash or not at all."""

import errno
import hashlib

import pytest

from weft.core.errors import ResourceError
from weft.runs.storage import Digest, digest_file, replace_file, room_for, write_file


def test_a_digest_is_that_of_the_bytes(tmp_path):
    expected = Digest(hashlib.sha256(b"abcd").hexdigest(), 4)
    assert write_file(tmp_path / "x", [b"ab", memoryview(b"cd")]) == expected == digest_file(tmp_path / "x")


def test_replacing_swaps_the_whole_content(tmp_path):
    replace_file(tmp_path / "x", b"old and long")
    replace_file(tmp_path / "x", b"new")
    assert (tmp_path / "x").read_bytes() == b"new"
    assert [path.name for path in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
def test_a_full_disk_says_bytes_needed_and_free(tmp_path, number):
    message = (
        r"The disk is full: the thing in .* needs 1,234 bytes, but [\d,]+ are free\. Old is kept\. Free some"
    )
    with pytest.raises(ResourceError, match=message), room_for(1234, "the thing", tmp_path, "Old is kept. "):
        raise OSError(number, "full")


def test_other_failures_pass(tmp_path):
    with pytest.raises(PermissionError), room_for(1, "the thing", tmp_path):
        raise PermissionError(errno.EACCES, "no")
