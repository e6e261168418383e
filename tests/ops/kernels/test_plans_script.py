"""`scripts/plans.py`, which times cuts of a recurrence on a GPU, as far as it goes on the CPU."""

import importlib.util
from pathlib import Path

import pytest
import torch
from cuda_on_cpu import play_gpu

from weft.bench.recurrent import Shape
from weft.ops.kernels import plan

SCRIPT = Path(__file__).parents[3] / "scripts" / "plans.py"


class Event:
    """Stands for one of CUDA's; a millisecond lies between any two."""

    def __init__(self, enable_timing: bool):
        pass

    def record(self) -> None:
        pass

    def elapsed_time(self, other: "Event") -> float:
        return 1.0


@pytest.fixture
def script(monkeypatch):
    spec = importlib.util.spec_from_file_location("plans", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    play_gpu(monkeypatch)
    monkeypatch.setattr(torch.cuda, "Event", Event)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    monkeypatch.setattr(module, "DEVICE", "cpu")
    monkeypatch.setattr(module, "CUTS", 2)
    return module


@pytest.mark.parametrize("backward", [False, True])
def test_every_cut_has_a_time_an_estimate_and_the_same_result(script, backward):
    layer = script.Layer("lstm", Shape(2, 4, 3, 16), backward)
    lines = [line.split(maxsplit=3) for line in script.compare(layer)]
    assert len(lines) == 2
    assert lines[0][3] == str(plan.choose(layer.problem))
    assert {took for took, *_ in lines} == {"250.00"}
    assert all(float(error) < 1e-2 for _, _, error, _ in lines)


def test_words_choose_layers(script):
    titles = [layer.title for layer in script.layers(["lstm", "1024→1024"])]
    assert titles == ["lstm B64 T256 1024→1024 forward", "lstm B64 T256 1024→1024 backward"]
