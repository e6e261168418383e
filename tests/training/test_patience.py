"""What is best, in which direction, and when waiting is over."""

import math

import pytest

from weft.core.errors import ConfigError
from weft.training.patience import Patience


@pytest.mark.parametrize(
    ("better", "values", "best"), [("lower", [3, 2, 5, 2], 2), ("higher", [3, 2, 5, 5], 3)]
)
def test_it_knows_the_first_best_in_the_metrics_direction(better, values, best):
    patience = Patience("score", {"score": better}, 0)
    for step, value in enumerate(values, start=1):
        patience.observe({"score": float(value), "loss": 1.0}, step)
    assert patience.best_step == best
    assert not patience.exhausted


def test_it_ends_after_so_many_without_a_new_best_and_survives_a_save():
    patience = Patience("loss", {}, 2)
    assert patience.observe({"loss": math.inf}, 1)
    assert patience.observe({"loss": 1.0}, 2)
    assert not patience.observe({"loss": math.nan}, 3), "nothing is known, so nothing is waited for"
    assert not patience.observe({"loss": 1.5}, 4)
    assert not patience.exhausted
    other = Patience("loss", {}, 2)
    other.load(patience.save())
    assert not other.observe({"loss": 1.0}, 5)
    assert other.exhausted
    assert other.observe({"loss": 0.5}, 6)
    assert not other.exhausted


def test_a_metric_nobody_measures_is_refused():
    with pytest.raises(ConfigError, match=r"`train.metric` cannot be `blue`\. Did you mean `bleu`\?"):
        Patience("blue", {"bleu": "higher"}, 0)
    with pytest.raises(ConfigError, match=r"`train.metric` cannot be `bleu`"):
        Patience("bleu", {"bleu": "higher"}, 0).observe({"loss": 1.0}, 1)
