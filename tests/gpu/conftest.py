"""What the tests on a GPU share."""

import jaxtyping
import pytest
import torch

from weft.bench.records import commit_of_sources, name_of, versions_here


@pytest.fixture
def traceable(monkeypatch):
    """Turn off the checks that tests hang on every function: torch.compile cannot trace them."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


def pytest_terminal_summary(terminalreporter):
    """Say what the tests ran on, so that their log says what it holds for."""
    if torch.cuda.is_available():
        versions = ", ".join(f"{name} {value}" for name, value in versions_here().items())
        where = f"{name_of(torch.device('cuda'))}; {versions}; commit {commit_of_sources()}"
        terminalreporter.write_line(where)
