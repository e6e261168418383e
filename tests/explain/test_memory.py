import os
import subprocess
import sys

import pytest
import torch
from explained import settings_of, task_and_data

from weft.explain.memory import measure_batch, optimizer_numbers, state_bytes
from weft.training import TrainConfig


@pytest.mark.parametrize(
    ("config", "numbers"),
    [
        (TrainConfig(), 2),
        (TrainConfig(optimizer="sgd"), 0),
        (TrainConfig(optimizer="sgd", momentum=0.9), 1),
        (TrainConfig(optimizer="rmsprop"), 1),
        (TrainConfig(ema=0.999), 3),
    ],
)
def test_what_an_optimizer_keeps(config, numbers):
    assert optimizer_numbers(config) == numbers


def told_and_measured(settings, monkeypatch):
    """Return what small copies tell of a batch, and what the model itself takes."""
    task, data = task_and_data(settings, [9, 7, 8])
    batch = task.feed(data, 0).batch(0, 0)

    def run(model):
        return task.loss(model, batch, None, 0.0).total

    told = measure_batch(task.build, settings.model, run)
    monkeypatch.setattr("weft.explain.memory.LARGEST_MEASURED", 1000)
    return told, measure_batch(task.build, settings.model, run)


@pytest.mark.parametrize("family", ["lstm", "transformer", "tcn"])
@pytest.mark.parametrize("vocabulary", [40, 2000])  # of few words layers take the most, of many the head
def test_a_wide_model_is_told_by_narrow_ones(family, vocabulary, monkeypatch):
    settings = settings_of(
        model={"family": family, "width": 160, "layers": 1}, data={"vocabulary": vocabulary}
    )
    told, measured = told_and_measured(settings, monkeypatch)
    assert told.training == pytest.approx(measured.training, rel=0.05)
    assert told.use == pytest.approx(measured.use, rel=0.05)


class Product(torch.nn.Linear):
    def build(self, config):
        return self


def test_the_most_bytes_by_hand():
    layer, x = Product(8, 4), torch.zeros(5, 8)
    config = settings_of(model={"family": "lstm", "width": 8}).model
    taken = measure_batch(layer.build, config, lambda model: torch.tanh(model(x)).sum())
    number, output, weight, bias = 4, 4 * 5 * 4, 4 * 4 * 8, 4 * 4
    assert taken.use == output + output  # W x + b and its tanh
    assert taken.training == number + number + output + weight + bias  # loss, 1, d, d^T x, sum of d


def test_widths_that_take_other_operations_are_told_by_the_most(monkeypatch):
    monkeypatch.setattr("weft.ops.attention._CHUNK", 6 * 3 * 9 * 50)  # 6 queries at once up to width 50
    model = {"family": "lstm", "width": 160, "layers": 1, "attention": "additive", "feed": "output"}
    told, measured = told_and_measured(settings_of(model=model), monkeypatch)
    assert told.training == pytest.approx(measured.training, rel=0.1)
    assert measured.use <= told.use <= 2 * measured.use  # chunks of a wide model are no larger


def test_state_of_a_decoder():
    settings = settings_of(model={"family": "lstm", "width": 8, "layers": 3})
    model = task_and_data(settings, [3])[0].build(settings.model)
    assert state_bytes(model, rows=5, steps=100) == 4 * 3 * 2 * 5 * 8


STEPS = """
import resource
import sys
import torch
from explained import settings_of, task_and_data
from weft.explain import Subject, explain
from weft.training import build_optimizer

def train(width, lengths):
    task, data = task_and_data(settings, lengths)
    model = task.build(settings.model.with_width(width)).train()
    optimizer, batch = build_optimizer(model, settings.train), task.feed(data, 0).batch(0, 0)
    for _ in range(3):
        optimizer.zero_grad()
        task.loss(model, batch, None, 0.0).total.backward()
        optimizer.step()

def most():
    if sys.platform == "darwin":
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    lines = open("/proc/self/status").read().splitlines()  # ru_maxrss begins with what the parent took
    return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM"))

torch.set_num_threads(1)
model = {"family": sys.argv[2], "width": int(sys.argv[3]), "layers": 3}
settings = settings_of(task={"name": sys.argv[1]}, model=model, data={"vocabulary": 4000}, batch={"rows": 64})
train(8, [3])
before = most()
train(int(sys.argv[3]), [64] * 64)
taken = most() - before
task, data = task_and_data(settings, [64] * 64)
told = explain(Subject(task, settings.model, settings.train, data)).memory.training
print(sum(told.values()), taken)
"""


@pytest.mark.long
@pytest.mark.parametrize(
    ("task", "family", "width"),
    [
        ("translate", "transformer", 160),
        ("language", "transformer", 160),
        ("language", "tcn", 320),
        ("language", "lstm", 320),
    ],
)
def test_a_process_takes_what_was_told(task, family, width):
    mapped = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}  # what is freed goes back
    places = os.pathsep.join(path for path in sys.path if path)
    words = [sys.executable, "-c", STEPS, task, family, str(width)]
    environment = {**os.environ, **mapped, "PYTHONPATH": places}
    out = subprocess.run(words, env=environment, check=True, capture_output=True, text=True).stdout
    told, taken = map(int, out.split())
    assert taken > 200e6
    assert 0.9 <= told / taken <= 1.4  # oneDNN's LSTM asks for more than it touches
