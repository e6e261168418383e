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


@pytest.mark.parametrize("family", ["lstm", "transformer", "tcn"])
def test_a_wide_model_is_told_by_narrow_ones(family, monkeypatch):
    settings = settings_of(model={"family": family, "width": 160, "layers": 1})
    task, data = task_and_data(settings, [9, 7, 8])
    batch = task.feed(data, 0).batch(0, 0)

    def run(model):
        return task.loss(model, batch, None, 0.0)

    told = measure_batch(task.build, settings.model, run)
    monkeypatch.setattr("weft.explain.memory.LARGEST_MEASURED", 1000)
    measured = measure_batch(task.build, settings.model, run)
    assert told.kept == pytest.approx(measured.kept, rel=0.05)
    assert told.working == pytest.approx(measured.working, rel=0.05)


def test_kept_bytes_by_hand():
    class Product(torch.nn.Linear):
        def build(self, config):
            return self

    layer = Product(8, 4)
    config = settings_of(model={"family": "lstm", "width": 8}).model
    x = torch.zeros(5, 8)
    taken = measure_batch(layer.build, config, lambda model: torch.tanh(model(x)))
    assert taken.kept == 4 * (5 * 8 + 5 * 4)  # x for the weight, tanh's own output
    assert taken.working == 4 * (5 * 8 + 5 * 4)


def test_state_of_a_decoder():
    settings = settings_of(model={"family": "lstm", "width": 8, "layers": 3})
    model = task_and_data(settings, [3])[0].build(settings.model)
    assert state_bytes(model, rows=5, steps=100) == 4 * 3 * 2 * 5 * 8
