"""What is freed is not given back between steps: counted in page faults of a program of its own."""

import os
import subprocess
import sys

LOOP = """
import resource, sys
import numpy as np
from weft.cli.heap import keep_freed_memory

kept = sys.argv[1] == "kept" and keep_freed_memory()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for step in range(20):
    pieces = [np.ones(1 << 20) for _ in range(4)]  # 8 MiB each
    del pieces
print(int(kept), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(word, **environment):
    """Return whether memory was kept, and the page faults of 20 steps that take and free 32 MiB."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("MALLOC_", "GLIBC_"))}
    told = subprocess.run(
        [sys.executable, "-c", LOOP, word],
        env=clean | environment,
        capture_output=True,
        text=True,
        check=True,
    )
    return tuple(map(int, told.stdout.split()))


def test_steps_after_the_first_meet_no_page_faults():
    kept, few = faults("kept")
    _, many = faults("given back")
    assert few < many / 4 if kept else sys.platform != "linux"


def test_who_set_malloc_up_is_left_alone():
    assert faults("kept", MALLOC_TRIM_THRESHOLD_="100000")[0] == 0
