"""What every test shares: shapes and types checked on every call, one thread, fixed seeds, data or a skip."""

import os
import shutil
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from jaxtyping import install_import_hook

install_import_hook("weft", "annotation_check.check")  # before the first import of weft

import hypothesis
import numpy as np
import torch

torch.set_num_threads(1)
if torch.cuda.is_available():
    os.environ["WEFT_KERNELS"] = "all"  # what the tests are about; weft reads it when it is imported
else:
    os.environ["TRITON_INTERPRET"] = "1"  # Triton reads it when it is imported
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job ignores Ctrl-C
hypothesis.settings.register_profile("weft", deadline=None, derandomize=True, database=None)
hypothesis.settings.load_profile("weft")


@pytest.fixture(autouse=True, scope="session")
def cache_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Keep what tests prepare away from the user's own cache."""
    folder = tmp_path_factory.mktemp("cache")
    os.environ["WEFT_CACHE"] = str(folder)
    return folder


def pytest_make_parametrize_id(val: object) -> None:
    """Refuse content as the name of a test: where the clock or a library makes it, two workers disagree."""
    if isinstance(val, bytes) and len(val) > 32:
        raise pytest.UsageError(f"name a parameter of {len(val)} bytes: pytest.param(…, id=…)")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say what could not be collected here."""
    if sys.platform != "linux":
        terminalreporter.write_line("left out: tests/ops/kernels of Triton and CUDA C++, which need Linux")
    elif shutil.which("c++") is None:
        terminalreporter.write_line(
            "left out: tests/ops/kernels of CUDA C++ played on the CPU, for want of a C++ compiler"
        )
    from run_time_compiler import is_here

    if not is_here():
        terminalreporter.write_line(
            "left out: tests/ops/kernels/test_cuda.py, for want of CUDA's run-time compiler"
        )


@pytest.fixture(autouse=True)
def fixed_seeds() -> None:
    """Start every test from the same chance."""
    torch.manual_seed(0)
    np.random.seed(0)


@pytest.fixture(scope="session")
def data_file() -> Callable[[str], Path]:
    """Return a function from a data file's name to its path; an absent file skips the test."""
    from weft.data.locate import DataMissing, locate

    def find(name: str) -> Path:
        try:
            return locate(name)
        except DataMissing:
            return pytest.skip(f"absent data: {name}")  # the one reason to skip

    return find
