"""What the tests on a GPU share."""

import os

import jaxtyping
import pytest
import torch

from weft.bench.records import commit_of_sources, name_of, versions_here


@pytest.fixture
def traceable(monkeypatch):
    """Turn off the checks that tests hang on every function: torch.compile cannot trace them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


@pytest.fixture(autouse=True)
def nothing_runs_on_a_lost_gpu(request):
    """End the process after a kernel's error, which it cannot be free of; pytest-xdist starts another."""
    yield
    try:
        torch.cuda.synchronize()
    except RuntimeError as error:
        if hasattr(request.config, "workerinput"):
            os._exit(1)
        pytest.exit(f"{request.node.name} lost the GPU: {error}", returncode=1)


def pytest_terminal_summary(terminalreporter):
    """Say what the tests ran on, so that their log says what it holds for."""
    if torch.cuda.is_available():
        versions = ", ".join(f"{name} {value}" for name, value in versions_here().items())
        where = f"{name_of(torch.device('cuda'))}; {versions}; commit {commit_of_sources()}"
        terminalreporter.write_line(where)
