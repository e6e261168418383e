"""What people see while training goes on."""

import io
import re

import pytest
from toy_training import make_folder, train_toy

from weft.training import TrainConfig
from weft.training.progress import describe, duration


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_piped_there_is_one_plain_line_at_every_log(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := io.StringIO())
    train_toy(make_folder(tmp_path / "run"), TrainConfig(steps=4, log_every=2), quiet=False)
    lines = stream.getvalue().splitlines()
    trained = [line for line in lines if " train " in line]
    assert len(trained) == 2
    assert re.search(
        r"step 2  epoch 1  train  loss 2\.\d+ .* steps/s  [\d,]+ tokens/s  0:00 left$", trained[0]
    )
    assert "\x1b" not in stream.getvalue()


def test_on_a_terminal_it_is_drawn_and_cleared(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    train_toy(make_folder(tmp_path / "run"), TrainConfig(steps=4, log_every=2), quiet=False)
    assert "saved step-00000004" in stream.getvalue()


@pytest.mark.parametrize(("seconds", "text"), [(0.4, "0:00"), (61, "1:01"), (3723, "1:02:03")])
def test_durations_read_as_clocks_show_them(seconds, text):
    assert duration(seconds) == text


def test_a_row_reads_as_a_line():
    row = {"step": 3, "epoch": 1, "split": "valid", "loss": 0.123456, "seconds": 1.0}
    assert describe(row) == "step 3  epoch 1  valid  loss 0.1235"


def test_tensorboard_gets_the_curves(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, TrainConfig(steps=2, log_every=1, tensorboard=True))
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder.path / "tensorboard"))
    events.Reload()
    rows = [row for row in folder.metrics.read() if row["split"] == "train"]
    assert [round(e.value, 4) for e in events.Scalars("train/loss")] == [
        round(row["loss"], 4) for row in rows
    ]
    assert [e.step for e in events.Scalars("valid/loss")] == [2]
