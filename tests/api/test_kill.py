"""A training killed at any moment goes on as if it had never stopped, in every family."""

import contextlib
import multiprocessing
import os
import random
import signal
import time
from pathlib import Path

import pytest

from weft.api.settings import parse_settings
from weft.api.training import resume, start
from weft.nn.families import families
from weft.runs import RunFolder

STEPS = 12
FORK = multiprocessing.get_context("fork")  # the child need not import torch again


def settings(family: str, data: Path, run: Path):
    return parse_settings(
        {
            "task": "translate",
            "run": str(run),
            "threads": 1,
            "data": {"train": [str(data)], "tokens": "char", "fractions": [0.8, 0.1, 0.1]},
            "batch": {"tokens": 60},
            "model": {"family": family, "width": 8, "layers": 2, "dropout": 0.3},
            "train": {
                "steps": STEPS,
                "accumulate": 2,
                "checkpoint_every": 2,
                "validate_every": 5,
                "log_every": 1,
            },
        }
    )


def train(family: str, data: Path, run: Path) -> None:
    with contextlib.suppress(FileExistsError):
        if (run / "tokenizer.json").exists():
            resume(run, quiet=True)
        else:
            start(settings(family, data, run), quiet=True)


def in_a_child(family: str, data: Path, run: Path, seconds: float | None = None) -> float:
    """Train in a process of its own, killed after so many seconds; return how long it lived."""
    begin = time.monotonic()
    child = FORK.Process(target=train, args=(family, data, run))
    child.start()
    child.join(seconds)
    if child.is_alive():
        os.kill(child.pid or 0, signal.SIGKILL)
    child.join()
    assert seconds is not None or child.exitcode == 0
    return time.monotonic() - begin


def outcome(run: Path):
    """Return the weights, and what was measured at which step, but for the time it took."""
    folder = RunFolder.open(run)
    rows = [{k: v for k, v in row.items() if k != "seconds"} for row in folder.metrics.read()]
    return {
        name: tensor.numpy().tobytes() for name, tensor in folder.checkpoint("last").weights().items()
    }, rows


def check(family: str, points: int, folder: Path) -> None:
    data = folder / "pairs.tsv"
    chance = random.Random(family)
    words = ["".join(chance.choices("abcdef", k=chance.randint(2, 6))) for _ in range(80)]
    data.write_text("".join(f"{word}\t{word[::-1]}\n" for word in words))
    lived = in_a_child(family, data, folder / "whole")
    want = outcome(folder / "whole")
    assert len(want[1]) >= STEPS
    for point in range(points):
        run = folder / f"killed{point}"
        in_a_child(family, data, run, chance.uniform(0.1, 0.9) * lived)
        if run.exists() and not (run / "tokenizer.json").exists():
            continue  # killed before training began: there is nothing to go on with
        in_a_child(family, data, run)
        assert outcome(run) == want, f"kill point {point}"


@pytest.mark.parametrize("family", list(families))
def test_two_kill_points(family, tmp_path):
    check(family, 2, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("family", list(families))
def test_ten_kill_points(family, tmp_path):
    check(family, 10, tmp_path)
