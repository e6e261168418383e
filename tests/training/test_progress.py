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
    assert [line.split()[1] for line in trained] == ["1", "2", "4"]
    assert re.search(
        r"step 2  epoch 1  train  loss \d\.\d+ .* steps/s  [\d,]+ tokens/s  0:00 left$", trained[1]
    )
    assert "\x1b" not in stream.getvalue()


def on_a_terminal(folder, monkeypatch) -> str:
    monkeypatch.setattr("sys.stderr", stream := Terminal())
    monkeypatch.setattr("weft.training.progress._REDRAW", 0.0)
    train_toy(folder, TrainConfig(steps=12, log_every=2, validate_every=6), quiet=False)
    return stream.getvalue()


def seen(text: str) -> list[str]:
    """Return what a terminal shows in the end of lines drawn over with carriage returns."""
    lines = []
    for line in text.split("\n"):
        shown = ""
        for part in line.split("\r"):
            shown = part + shown[len(part) :]
        lines.append(shown.rstrip())
    return lines


def test_on_a_terminal_a_line_is_drawn_and_cleared_and_validations_stay(tmp_path, monkeypatch):
    text = on_a_terminal(make_folder(tmp_path / "run"), monkeypatch)
    assert re.search(r"\r 83%  0:00 left  step 10  loss \d\.\d+  [\d.e+]+ steps/s  [\d,]+ tokens/s", text)
    lines = seen(text)
    assert [line.split("  ")[0] for line in lines if "valid  loss" in line] == ["step 6", "step 12"]
    assert lines[-2:] == ["done: steps reached; the best weights are of step 12", ""]
    assert "\x1b" not in text


def test_a_narrow_terminal_shows_the_time_left_on_one_line(tmp_path, monkeypatch):
    monkeypatch.setattr("weft.training.progress._COLUMNS", 40)
    text = on_a_terminal(make_folder(tmp_path / "run"), monkeypatch)
    drawn = [part for part in re.split(r"[\r\n]", text) if " left  step" in part]
    assert drawn
    assert max(map(len, drawn)) < 40 - len("^C")


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
