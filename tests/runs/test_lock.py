"""One holder at a time; a dead one holds nothing."""

import os
import signal

import pytest

from weft.core.errors import InputError
from weft.runs import lock


def test_a_second_holder_is_refused_by_name_and_let_in_afterwards(tmp_path):
    with lock.hold(tmp_path), pytest.raises(InputError, match=rf"being trained by process {os.getpid()} on"):
        lock.hold(tmp_path).__enter__()
    with lock.hold(tmp_path):
        pass


def test_the_lock_of_a_killed_process_is_taken_over(tmp_path):
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        with lock.hold(tmp_path):
            os.write(writing, b"x")
            signal.pause()
    os.read(reading, 1)
    with pytest.raises(InputError, match=rf"process {child} on"):
        lock.hold(tmp_path).__enter__()
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert (tmp_path / lock.NAME).read_text().startswith(f"process {child}")
    with lock.hold(tmp_path):
        pass
