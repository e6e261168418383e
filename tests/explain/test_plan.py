import numpy as np
import pytest

from weft.data import WindowFeed
from weft.explain.plan import Plan, plan_training
from weft.training import TrainConfig


def ten_batches():
    return WindowFeed(np.zeros((29, 1), np.float32), 10, 10, rows=1)


@pytest.mark.parametrize(
    ("config", "steps", "tokens"),
    [
        (TrainConfig(steps=7), 7, 700),
        (TrainConfig(epochs=3), 30, 3000),
        (TrainConfig(epochs=1, accumulate=4), 3, 1000),
        (TrainConfig(epochs=5, steps=12), 12, 1200),
        (TrainConfig(tokens=250), 3, 300),
        (TrainConfig(), 300, 30_000),  # where nothing is said, as many epochs as make 300 steps
        (TrainConfig(minutes=3), None, None),
    ],
)
def test_limits(config, steps, tokens):
    plan = plan_training(config, ten_batches(), 100.0, assumed=False)
    assert (plan.steps, plan.tokens) == (steps, tokens)


def test_made_up_data_know_no_epochs():
    assert plan_training(TrainConfig(epochs=3), ten_batches(), 100.0, assumed=True).steps is None


def test_minutes_count_at_a_measured_speed():
    plan = Plan(100.0, 10, None, None)
    assert plan.within(2.0, tokens_per_second=50.0).tokens == 6000
    assert plan.within(2.0, tokens_per_second=50.0).steps == 60
    assert Plan(100.0, 10, 5, 500.0).within(2.0, 50.0).tokens == 500
