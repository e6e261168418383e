"""Telling how a series goes on: hand-worked loss and metrics, windows of each part, a tiny training."""

import json

import numpy as np
import pytest
import torch
from torch import nn

from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.config import parse
from weft.core.errors import ConfigError, DataError
from weft.data import VectorsField, prepare
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import ForecastModel
from weft.tasks import BatchConfig, Forecast, open_parts
from weft.tasks.forecast import ForecastConfig


class LastValue(ForecastModel):
    """Tells that nothing changes."""

    def __init__(self, horizon):
        nn.Module.__init__(self)
        self.unused, self.horizon = nn.Parameter(torch.zeros(())), horizon

    def forward(self, history):
        return history[:, -1:].expand(-1, self.horizon, -1)


def make_task(channels=1, **task):
    config = parse(ForecastConfig, {"history": 3, "horizon": 2, **task}, "task")
    change = [4.0, 0.0][:channels]  # the second channel never changed in training
    field = VectorsField(channels, [10.0] * channels, [2.0] * channels, change)
    return Forecast(config, {"series": field}, BatchConfig(rows=2))


def dataset(task, *series):
    rows = [Row(i + 1, (np.asarray(one, float),)) for i, one in enumerate(series)]
    return prepare(rows, {"series": task.series})


@pytest.mark.parametrize(("kind", "total"), [("mse", 1 + 9), ("mae", 1 + 3), ("huber", 0.5 + 2.5)])
def test_loss_by_hand(kind, total):
    task = make_task(loss=kind)
    batch = {"history": torch.tensor([[[0.0], [0.0], [1.0]]]), "future": torch.tensor([[[2.0], [4.0]]])}
    loss = task.loss(LastValue(2), batch, None, 0.0)
    assert (loss.total.item(), loss.count.item()) == (pytest.approx(total), 2)


def test_loss_of_a_batch_is_the_sum_over_rows_alone():
    task = make_task()
    history, future = torch.randn(4, 3, 1), torch.randn(4, 2, 1)
    whole = task.loss(LastValue(2), {"history": history, "future": future}, None, 0.0).total
    alone = [
        task.loss(LastValue(2), {"history": h[None], "future": f[None]}, None, 0.0).total
        for h, f in zip(history, future, strict=True)
    ]
    torch.testing.assert_close(whole, torch.stack(alone).sum())


def test_metrics_by_hand():
    task = make_task()
    data = dataset(task, [[10], [12], [14], [16], [18]])  # one window; the forecast is 14, 14
    evaluation = task.evaluate(LastValue(2), data, [], DecodingConfig())
    values = {name: m.value for name, m in evaluation.measurements.items()}
    assert list(values) == ["mse", "mae", "mase", "smape"]
    assert values["mse"] == pytest.approx((1 + 4) / 2)  # scaled: 2 is the deviation
    assert values["mae"] == pytest.approx(1.5)
    assert values["mase"] == pytest.approx(3 / 4)  # mean error 3, change in training 4
    assert values["smape"] == pytest.approx((200 * 2 / 30 + 200 * 4 / 32) / 2)
    assert task.validate(LastValue(2), data) == pytest.approx({"loss": 2.5, "mse": 2.5, "mae": 1.5})


def test_a_channel_that_never_changes_is_left_out_of_mase():
    task = make_task(2)
    data = dataset(task, [[10, 5], [12, 5], [14, 5], [16, 5], [18, 5]])
    evaluation = task.evaluate(LastValue(2), data, [], DecodingConfig())
    assert evaluation.measurements["mase"].value == pytest.approx(3 / 4)


def test_windows_of_test_begin_their_futures_in_test():
    settings = parse_settings(
        {"task": {"name": "forecast", "history": 3, "horizon": 2}, "data": {"fractions": [0.6, 0.2, 0.2]}}
    )
    memory = {"train": [np.arange(20.0)[:, None]]}
    parts = open_parts(settings.data, settings.schema(), memory, settings.by_position())
    task, futures = make_task(), {}
    for name in ("train", "valid", "test"):
        feed = task._windows(prepare(getattr(parts, name), {"series": VectorsField(1)}), 1)
        batches = [feed.batch(0, i)["future"] for i in range(feed.batches(0))]
        futures[name] = sorted(torch.cat(batches)[:, 0, 0].int().tolist())
    assert futures == {"train": list(range(3, 11)), "valid": [12, 13, 14], "test": [16, 17, 18]}


def test_predictions_come_in_order_on_the_raw_scale():
    task = make_task()
    lines = ["[1, 2, 3]", "", "[9, 1, 2, 7]", None, [4.0, 5.0, 6.5]]
    told = list(task.predict(LastValue(2), lines, DecodingConfig()))
    assert [p.text for p in told] == ["[3.0, 3.0]", "", "[7.0, 7.0]", "", "[6.5, 6.5]"]
    assert told[0].plain == {"forecast": [3.0, 3.0]}


def test_several_channels_are_told_step_by_step():
    (told,) = make_task(2).predict(LastValue(2), ["[[1, 2], [3, 4], [5, 6]]"], DecodingConfig())
    assert json.loads(told.text) == [[5, 6], [5, 6]]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("[1, 2]", r"needs the last 3 steps \(`task.history`\), but got 2"),
        ("{1", "must be a JSON list of steps"),
    ],
)
def test_lines_that_cannot_be_told_are_refused(line, message):
    with pytest.raises(DataError, match=message):
        list(make_task().predict(LastValue(2), [line], DecodingConfig()))


def test_counts_must_be_three():
    with pytest.raises(ConfigError, match=r"`task\.counts` must be three numbers"):
        make_task(counts=[10, 2])


@pytest.mark.parametrize("channels", ["joint", "separate"])
def test_two_waves_are_learned(tmp_path, channels):
    steps = np.arange(400)
    waves = np.stack([5 + np.sin(steps * 2 * np.pi / 12), 50 - 20 * np.cos(steps * 2 * np.pi / 8)], 1)
    values = {
        "task": {"name": "forecast", "history": 24, "horizon": 6, "channels": channels},
        "data": {"season": 24},
        "run": str(tmp_path / "run"),
        "threads": 1,
        "model": {"family": "gru", "width": 16, "layers": 1, "patch": 2, "input_dropout": 0},
        "train": {"lr": 0.01, "epochs": 6, "schedule": "cosine"},
    }
    run, _ = start(parse_settings(values), {"train": [waves]}, quiet=True)
    assert run.evaluate().measurements["mse"].value < 0.05  # the deviation is 1
    told = np.array(json.loads(run.predict([waves[100:124].tolist()])[0]))
    np.testing.assert_allclose(told[:, 1], waves[124:130, 1], atol=6)
