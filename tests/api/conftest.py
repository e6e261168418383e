"""One small run that many tests read and none changes."""

from pathlib import Path

import pytest
from tiny_runs import train_reverse


@pytest.fixture(scope="session")
def reverse_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a run that turns words of three letters around."""
    seldom = ("train.checkpoint_every=50", "train.validate_every=50")
    return train_reverse(tmp_path_factory.mktemp("reverse"), *seldom, steps=100)
