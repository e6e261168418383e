"""The loop: what a step computes, what ends it, what it leaves."""

import json
import math
import os
import signal
from dataclasses import replace
from typing import ClassVar

import pytest
import torch
from torch import nn
from toy_training import CONFIG, ToyFeed, ToyLoss, ToyTask, make_folder, make_model, train_toy, validation

from weft.core.errors import ConfigError, DataError, Interrupted
from weft.core.sequences import Sequences
from weft.training import TrainConfig, train


class LineTask:
    """y = w x with a squared error; counts differ from batch to batch."""

    better: ClassVar[dict[str, str]] = {"error": "lower"}

    def loss(self, model, batch, state, smoothing):
        x = batch["x"]
        return ToyLoss(((model(x) - 3 * x) ** 2).sum(), torch.tensor(len(x)), None)

    def validate(self, model, data):
        return {"error": float((model.weight.detach() - 3).abs().sum())}


class LineFeed:
    carries = False
    rows = ([1.0, 2.0, 3.0], [0.5], [4.0, 1.0])

    def batches(self, epoch):
        return len(self.rows)

    def batch(self, epoch, position):
        return {"x": torch.tensor(self.rows[position]).unsqueeze(1)}

    def tokens(self, batch):
        return len(batch["x"])


def line(weight=0.0):
    model = nn.Linear(1, 1, bias=False)
    nn.init.constant_(model.weight, weight)
    return model


def test_a_step_follows_the_gradient_of_the_mean_over_its_whole_group(tmp_path):
    # batches {1, 2, 3} and {0.5}: sum of squares 14.25 over 4 elements; d/dw = 2 (w - 3) 14.25 / 4 = -21.375
    # then {4, 1} alone, as the epoch ends: w = .21375, d/dw = 2 (w - 3) 17 / 2 = -47.36625
    model, config = line(), TrainConfig(optimizer="sgd", lr=0.01, clip=0, accumulate=2, steps=2, log_every=1)
    train(model, LineTask(), LineFeed(), None, config, make_folder(tmp_path / "run"), quiet=True)
    assert model.weight.item() == pytest.approx(0.21375 + 0.4736625)
    first, second = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    assert first == {
        "step": 1,
        "epoch": 1,
        "split": "train",
        "loss": pytest.approx(9 * 14.25 / 4),
        "lr": 0.01,
        "gradient_norm": pytest.approx(21.375),
        "clipped": 0.0,
        "tokens": 4,
        "seconds": first["seconds"],
    }
    assert (second["epoch"], second["tokens"], second["gradient_norm"]) == (
        1,
        6,
        pytest.approx(47.36625, rel=1e-5),
    )


def test_clipping_limits_the_norm_and_the_share_is_logged(tmp_path):
    model, config = line(), TrainConfig(optimizer="sgd", lr=0.01, clip=5.0, steps=3, log_every=3)
    train(model, LineTask(), LineFeed(), None, config, make_folder(tmp_path / "run"), quiet=True)
    rows = map(json.loads, (tmp_path / "run/metrics.jsonl").read_text().splitlines())
    # norms 28, 1.475, 50.15…: the first and the third are cut to 5
    assert [(row["step"], row["clipped"]) for row in rows] == [(1, 1), (3, 0.5)]
    assert model.weight.item() == pytest.approx(0.05 + 0.01 * 2 * 2.95 * 0.25 + 0.05)


def test_the_toy_is_learnt_and_the_model_bears_the_best_weights(tmp_path):
    folder, model = make_folder(tmp_path / "run"), make_model()
    outcome = train(
        model,
        ToyTask(),
        ToyFeed(),
        validation(),
        replace(CONFIG, steps=150, metric="accuracy"),
        folder,
        quiet=True,
    )
    assert outcome.best["accuracy"] > 0.85
    assert outcome.best_step == folder.checkpoint("best").step
    best = folder.checkpoint("best").weights()
    assert all(torch.equal(best[name], value) for name, value in model.state_dict().items())
    rows = [row for row in folder.metrics.read() if row["split"] == "valid"]
    assert outcome.best["accuracy"] == max(row["accuracy"] for row in rows)


@pytest.mark.parametrize(
    ("limit", "step", "epoch", "reason"),
    [
        ({"steps": 9}, 9, 3, "steps"),  # an epoch is 4 steps: 7 batches in groups of 2
        ({"epochs": 2}, 8, 2, "epochs"),
        ({"tokens": 50}, 2, 1, "tokens"),  # batches hold 15, 14, 13, 15, … target elements
        ({"minutes": 1e-9, "steps": 10**6}, 1, 1, "minutes"),
        ({"steps": 9, "epochs": 2}, 8, 2, "epochs"),
    ],
)
def test_the_first_limit_met_ends_training(tmp_path, limit, step, epoch, reason):
    config = TrainConfig(accumulate=2, **limit)
    outcome = train_toy(make_folder(tmp_path / "run"), config)
    assert (outcome.step, outcome.epoch, outcome.reason) == (step, epoch, reason)


def test_patience_ends_training(tmp_path):
    outcome = train_toy(
        make_folder(tmp_path / "run"), TrainConfig(lr=0.0, validate_every=2, patience=3, steps=100)
    )
    assert (outcome.reason, outcome.step, outcome.best_step) == ("patience", 8, 2)


def test_validation_sees_the_average_and_best_holds_it(tmp_path):
    seen = []

    class Task(ToyTask):
        def validate(self, model, data):
            seen.append(model.head.bias.detach().clone())
            assert not model.training
            return super().validate(model, data)

    folder = make_folder(tmp_path / "run")
    train_toy(folder, TrainConfig(lr=0.05, ema=0.99, steps=6, validate_every=6), task=Task())
    last = folder.checkpoint("last")
    assert torch.equal(seen[0], last.weights()["head.bias"])
    raw = last.state()["ema"]["raw"]
    assert not any(tensor.shape == seen[0].shape and torch.equal(tensor, seen[0]) for tensor in raw)


def test_the_average_of_the_last_checkpoints_is_measured_and_can_be_best(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, TrainConfig(lr=0.05, steps=17, checkpoint_every=5, average=3), valid=None)
    mean = folder.checkpoint("best")
    assert mean.name == "average-00000017"
    parts = [folder.checkpoint(str(step)).weights()["head.bias"] for step in (10, 15, 17)]
    assert torch.allclose(mean.weights()["head.bias"], sum(parts) / 3)
    folder = make_folder(tmp_path / "validated")
    train_toy(folder, TrainConfig(lr=0.05, steps=17, checkpoint_every=5, average=3))
    assert [row for row in folder.metrics.read() if row.get("averaged")]


def test_a_signal_in_the_last_validation_is_heard_after_all_is_kept(tmp_path):
    class Task(ToyTask):
        def validate(self, model, data):
            os.kill(os.getpid(), signal.SIGINT)
            return super().validate(model, data)

    folder = make_folder(tmp_path / "run")
    with pytest.raises(Interrupted, match=r"SIGINT: training was done and saved") as left:
        train_toy(folder, TrainConfig(steps=2), task=Task())
    assert left.value.exit_code == 130
    assert folder.checkpoint("best").step == 2


def test_events_tell_the_caller_of_everything(tmp_path):
    events = []
    train_toy(
        make_folder(tmp_path / "run"),
        TrainConfig(steps=4, log_every=2, validate_every=4),
        on_event=lambda name, values: events.append((name, values["step"])),
    )
    assert events == [("train", 1), ("train", 2), ("train", 4), ("valid", 4), ("checkpoint", 4), ("done", 4)]


def test_an_empty_feed_is_refused(tmp_path):
    with pytest.raises(
        DataError, match=r"at least 1 batch, but the training data make 0\. Look at `data.train`"
    ):
        train_toy(make_folder(tmp_path / "run"), feed=ToyFeed(batches=0))


def test_an_unknown_metric_is_refused_before_the_first_step(tmp_path):
    folder = make_folder(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"`train.metric` cannot be `acuracy`\. Did you mean `accuracy`\?"):
        train_toy(folder, replace(CONFIG, metric="acuracy"))
    assert not folder.metrics.rows


def test_bf16_learns_too(tmp_path):
    outcome = train_toy(make_folder(tmp_path / "run"), replace(CONFIG, precision="bf16"))
    assert math.isfinite(outcome.best["loss"])
    assert outcome.best["loss"] < 2.2  # from ln 11 = 2.4


def test_a_batch_of_sequences_moves_whole():
    from weft.training.cursor import move

    batch = {"input": Sequences.full(torch.zeros(2, 3)), "fresh": torch.ones(2)}
    moved = move(batch, torch.device("meta"))
    assert moved["input"].data.device.type == moved["input"].lengths.device.type == "meta"
    assert moved["fresh"].device.type == "meta"
