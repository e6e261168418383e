"""Telling one number: hand-worked loss and metrics, padding, a tiny training, predictions that line up."""

import numpy as np
import pytest
import torch
from torch import nn

from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.config import parse
from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.data import TextField, ValueField, VectorsField, prepare
from weft.data.rows import Row
from weft.data.tokenizers import CharTokenizer
from weft.decoding import DecodingConfig
from weft.models import PooledModel, parse_model
from weft.tasks import BatchConfig, Regress
from weft.tasks.regress import RegressConfig


class Fixed(PooledModel):
    """Tells the sum of each row's ids, whatever else it is asked."""

    def __init__(self):
        nn.Module.__init__(self)
        self.unused = nn.Parameter(torch.zeros(()))

    def forward(self, x):
        return x.data.sum(1, keepdim=True).float()


def make_task(**task):
    fields = {"input": TextField(CharTokenizer.fit(["abc"])), "value": ValueField(10.0, 2.0)}
    return Regress(parse(RegressConfig, task, "task"), fields, BatchConfig(tokens=64))


def batch_of(rows, values):
    return {"input": Sequences.pad([torch.tensor(row) for row in rows]), "value": torch.tensor(values)}


def test_squared_loss_by_hand():
    loss = make_task().loss(Fixed(), batch_of([[1, 2], [4]], [1.0, 4.5]), None, 0.0)
    assert loss.total.item() == pytest.approx(2.0**2 + 0.5**2)
    assert loss.count.item() == 2


def test_huber_loss_is_linear_from_one_on():
    loss = make_task(loss="huber").loss(Fixed(), batch_of([[1, 2], [4]], [1.0, 4.5]), None, 0.0)
    assert loss.total.item() == pytest.approx((2.0 - 0.5) + 0.5 * 0.5**2)


def test_label_smoothing_is_refused():
    with pytest.raises(ConfigError, match="no classes to smooth over"):
        make_task().loss(Fixed(), batch_of([[1]], [0.0]), None, 0.1)


@pytest.mark.parametrize("family", ["lstm", "tcn", "transformer"])
def test_loss_of_a_padded_batch_is_the_sum_over_rows_alone(family):
    task = make_task()
    shape = {"family": family, "width": 8, "layers": 1, "dropout": 0, "input_dropout": 0}
    model = task.build(parse_model(shape, ("encoder",))).double()
    rows, values = [[4, 5, 6, 4], [5], [6, 6]], [0.5, -1.0, 2.0]
    together = task.loss(model, batch_of(rows, values), None, 0.0)
    alone = [task.loss(model, batch_of([r], [v]), None, 0.0).total for r, v in zip(rows, values, strict=True)]
    torch.testing.assert_close(together.total, torch.stack(alone).sum())


def test_metrics_stand_on_the_raw_scale_and_losses_on_the_scaled():
    task = make_task(metrics=["mae", "spearman"])
    ids = task.input.encode("abc")  # three different ids, so that their order is known
    texts = ["a", "b", "c"]
    raw = [10 + 2 * (int(i) + error) for i, error in zip(ids, (0.0, 1.0, -3.0), strict=True)]
    rows = [Row(i + 1, (text, value)) for i, (text, value) in enumerate(zip(texts, raw, strict=True))]
    data = prepare(rows, {"input": task.input, "value": task.value})
    evaluation = task.evaluate(Fixed(), data, rows, DecodingConfig())
    assert list(evaluation.measurements) == ["mae", "spearman", "loss"]
    assert evaluation.measurements["mae"].value == pytest.approx((0 + 2 + 6) / 3)
    assert evaluation.measurements["loss"].value == pytest.approx((0 + 1 + 9) / 3)
    assert evaluation.references == [f"{value:.7g}" for value in raw]
    assert (evaluation.sources, evaluation.exact) == (texts, False)
    told = task.validate(Fixed(), data)
    assert told["mse"] == pytest.approx((0 + 4 + 36) / 3)
    assert told["loss"] == pytest.approx((0 + 1 + 9) / 3)


def test_predictions_come_in_order_and_empty_lines_stay():
    task = make_task()
    ids = {letter: int(task.input.encode(letter)[0]) for letter in "abc"}
    told = [p.text for p in task.predict(Fixed(), ["ab", "", "c"], DecodingConfig())]
    assert told == [f"{10 + 2 * (ids['a'] + ids['b']):.7g}", "", f"{10 + 2 * ids['c']:.7g}"]


def test_a_series_may_be_the_input():
    task = Regress(
        RegressConfig(input="values"), {"input": VectorsField(2), "value": ValueField()}, BatchConfig()
    )
    model = task.build(parse_model({"family": "gru", "width": 4, "layers": 1}, ("encoder",)))
    (one,) = task.predict(model, [np.zeros((3, 2))], DecodingConfig())
    assert np.isfinite(one.plain["value"])


@pytest.mark.parametrize("family", ["lstm"])
def test_the_share_of_a_letter_is_learned(tmp_path, family):
    chance = np.random.default_rng(0)
    texts = ["".join(chance.choice(list("abc"), size=chance.integers(4, 12))) for _ in range(400)]
    rows = [(text, 100 + 30 * text.count("a") / len(text)) for text in texts]
    values = {
        "task": "regress",
        "run": str(tmp_path / "run"),
        "threads": 1,
        "batch": {"rows": 16},
        "model": {
            "family": family,
            "width": 8,
            "layers": 1,
            "pooling": "mean",
            "input_dropout": 0,
            "dropout": 0,
        },
        "train": {"lr": 0.03, "epochs": 6, "schedule": "cosine", "metric": "spearman"},
    }
    run, _ = start(parse_settings(values), {"train": rows}, quiet=True)
    measured = run.evaluate().measurements
    assert measured["spearman"].value > 0.95
    assert measured["mae"].value < 1.5  # the mean of training is off by about 4
    told = [float(text) for text in run.predict(["abab", "bacca", "ccbb"])]
    np.testing.assert_allclose(told, [115, 112, 100], atol=4)
