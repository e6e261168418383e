"""Exact resume: whatever ends a training, going on gives what never stopping gives, bit for bit."""

import os
import random
import signal
import time
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from toy_training import CONFIG, ToyFeed, ToyTask, make_folder, remains, train_toy

from weft.core.errors import ArtefactError, InputError, Interrupted, ResourceError
from weft.runs import RunFolder, checkpoint, storage
from weft.training import TrainConfig


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A training that never stopped, and how long it took."""
    folder = make_folder(tmp_path_factory.mktemp("whole") / "run")
    start = time.monotonic()
    train_toy(folder)
    return remains(folder), time.monotonic() - start


def in_child(work) -> int:
    """Run `work` in a forked process; return the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    return child


def resume_until_done(path: Path, **options) -> dict:
    folder = RunFolder.open(path)
    train_toy(folder, resume=True, **options)
    return remains(folder)


def kill_at(path: Path, seconds: float) -> None:
    child = in_child(lambda: train_toy(RunFolder.open(path), resume=True))
    time.sleep(seconds)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def kill_and_compare(path: Path, whole, seed: int) -> None:
    expected, duration = whole
    make_folder(path)
    chance = random.Random(seed)
    kill_at(path, chance.uniform(0, duration))
    kill_at(path, chance.uniform(0, duration / 2))  # and again while going on
    assert resume_until_done(path) == expected


@pytest.mark.parametrize("seed", range(10))
def test_killed_at_a_random_moment_it_goes_on_bit_for_bit(tmp_path, whole, seed):
    kill_and_compare(tmp_path / "run", whole, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 150))
def test_killed_at_many_random_moments_it_goes_on_bit_for_bit(tmp_path, whole, seed):
    kill_and_compare(tmp_path / "run", whole, seed)


def die_at_call(number: int) -> None:
    """Let the process be killed right before its `number`-th rename or wait for the disk."""
    calls = iter(range(1, number + 1))

    def counted(function):
        def call(*arguments):
            if next(calls, number) == number:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments)

        return call

    os.replace, os.fsync = counted(os.replace), counted(os.fsync)


def die_while_saving(path: Path, whole, number: int) -> None:
    make_folder(path)

    def work() -> None:
        die_at_call(number)
        train_toy(RunFolder.open(path), resume=True)

    os.waitpid(in_child(work), 0)
    assert resume_until_done(path) == whole[0]


@pytest.mark.parametrize("number", [1, 4, 7, 8, 9, 13, 16, 18, 27])
def test_killed_within_the_writing_of_a_checkpoint_it_goes_on_bit_for_bit(tmp_path, whole, number):
    die_while_saving(tmp_path / "run", whole, number)


@pytest.mark.long
@pytest.mark.parametrize("number", range(1, 140, 2))
def test_killed_anywhere_within_the_writing_it_goes_on_bit_for_bit(tmp_path, whole, number):
    die_while_saving(tmp_path / "run", whole, number)


@pytest.mark.parametrize(
    "config",
    [
        CONFIG,
        replace(CONFIG, ema=0.0, accumulate=1, optimizer="adam", schedule="inverse_sqrt"),
        replace(CONFIG, ema=0.0, accumulate=3, optimizer="sgd", momentum=0.9, schedule="constant"),
        replace(CONFIG, optimizer="rmsprop", schedule="plateau", plateau_patience=1, precision="bf16"),
        replace(CONFIG, checkpoint_every=0, validate_every=0, average=3, keep=1),
    ],
    ids=["adamw", "adam", "sgd", "rmsprop-plateau-bf16", "epochs-average"],
)
@pytest.mark.parametrize("carries", [True, False], ids=["carried", "bucketed"])
def test_a_signal_at_any_step_changes_nothing(tmp_path, config, carries):
    expected = make_folder(tmp_path / "whole")
    train_toy(expected, config, feed=ToyFeed(carries=carries))
    path = make_folder(tmp_path / "cut").path

    def interrupt_at(*steps):
        def on_event(name, values):
            if name == "train" and values["step"] in steps:
                os.kill(os.getpid(), signal.SIGTERM)

        return on_event

    for step in (8, 20):
        with pytest.raises(
            Interrupted, match=rf"SIGTERM: saved step-{step:08d}. Go on with `weft train --resume"
        ):
            train_toy(
                RunFolder.open(path),
                config,
                resume=True,
                feed=ToyFeed(carries=carries),
                on_event=interrupt_at(step),
            )
    train_toy(RunFolder.open(path), config, resume=True, feed=ToyFeed(carries=carries))
    assert remains(RunFolder.open(path)) == remains(expected)


def test_two_n_steps_are_n_steps_stop_resume_n_steps(tmp_path):
    config = replace(CONFIG, schedule="constant", steps=30)
    expected, halves = make_folder(tmp_path / "whole"), make_folder(tmp_path / "halves")
    train_toy(expected, config)
    train_toy(halves, replace(config, steps=15))
    train_toy(halves, config, resume=True)
    assert remains(halves) == remains(expected)


def test_resuming_what_is_done_changes_nothing(tmp_path):
    folder = make_folder(tmp_path / "run")
    first = train_toy(folder, replace(CONFIG, average=3))
    expected = remains(folder)
    again = train_toy(RunFolder.open(folder.path), replace(CONFIG, average=3), resume=True)
    assert remains(folder) == expected
    assert (again.step, again.best, again.best_step) == (first.step, first.best, first.best_step)


def test_a_signal_code_is_128_and_the_number():
    assert Interrupted("", signal.SIGTERM).exit_code == 143
    assert Interrupted("", signal.SIGINT).exit_code == 130


def test_a_damaged_newest_checkpoint_falls_back_with_a_warning_and_comes_out_the_same(tmp_path, whole):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, replace(CONFIG, schedule="cosine"))
    newest = folder.checkpoint("last").path / "optimizer.safetensors"
    data = bytearray(newest.read_bytes())
    data[len(data) // 2] ^= 1
    newest.write_bytes(data)
    events = []
    train_toy(
        RunFolder.open(folder.path), resume=True, on_event=lambda name, values: events.append((name, values))
    )
    warning, resumed = [values["message"] for name, values in events if name in ("warning", "resume")]
    assert "optimizer.safetensors is damaged" in warning
    assert "Falling back to the checkpoint before step-00000040" in warning
    assert resumed == "resumed from step-00000036"  # a new best, saved beside the schedule
    assert remains(folder) == whole[0]


def test_when_every_checkpoint_is_damaged_it_is_said(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder)
    for one in folder.checkpoints():
        (one.path / "model.safetensors").write_bytes(b"")
    with pytest.raises(
        ArtefactError, match=r"No checkpoint of .* is whole\. The newest: .*model\.safetensors"
    ):
        train_toy(folder, resume=True)


def test_a_full_disk_keeps_the_previous_checkpoint(tmp_path, monkeypatch, whole):
    folder = make_folder(tmp_path / "run")
    real = checkpoint.write_tensors

    def full(path, tensors):
        if "00000015" in str(path) and path.name == "optimizer.safetensors":
            path.write_bytes(b"half")
            raise OSError(28, "No space left on device", str(path))
        return real(path, tensors)

    monkeypatch.setattr(checkpoint, "write_tensors", full)
    with pytest.raises(
        ResourceError, match=r"checkpoint step-00000015 .* needs [\d,]+ bytes, but [\d,]+ are free"
    ):
        train_toy(folder)
    assert folder.checkpoint("last").step in (10, 12)
    assert not list(folder.path.glob("checkpoints/.*"))
    monkeypatch.setattr(checkpoint, "write_tensors", real)
    assert resume_until_done(folder.path) == whole[0]


def test_a_full_disk_under_metrics_is_one_line_too(tmp_path, monkeypatch, whole):
    folder = make_folder(tmp_path / "run")

    def full(path, line):
        with open(path, "a") as file:
            file.write(line[:5])
        raise OSError(28, "No space left on device", str(path))

    with monkeypatch.context() as patch:
        patch.setattr("weft.runs.metrics._append", full)
        with pytest.raises(ResourceError, match=r"The disk is full: the next row of metrics\.jsonl"):
            train_toy(folder)
    assert resume_until_done(folder.path) == whole[0]


def test_a_second_training_is_refused_while_the_first_lives_and_not_after(tmp_path, whole):
    folder = make_folder(tmp_path / "run")
    seen = []

    def on_event(name, values):
        if name == "train" and not seen:
            refused = pytest.raises(InputError, match=rf"is being trained by process {os.getpid()} on")
            with torch.random.fork_rng(), refused as refusal:  # elsewhere it would be another process
                train_toy(RunFolder.open(folder.path), resume=True)
            seen.append(refusal)

    train_toy(folder, on_event=on_event)
    assert seen
    assert resume_until_done(folder.path) == whole[0]


def test_a_new_training_refuses_a_used_folder(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, replace(CONFIG, steps=5))
    with pytest.raises(InputError, match=r"holds one already\. Choose another `run=`, or continue it"):
        train_toy(folder)


def test_other_data_than_it_began_with_are_refused(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, replace(CONFIG, steps=5))
    with pytest.raises(
        InputError, match=r"epoch 2 had 7 batches and now has 9\. Put the data back, or train anew"
    ):
        train_toy(folder, resume=True, feed=ToyFeed(batches=9))


def test_a_checkpoint_of_another_model_is_refused_in_one_line(tmp_path):
    folder = make_folder(tmp_path / "run")
    train_toy(folder, replace(CONFIG, steps=5))
    one = folder.checkpoint("last")
    weights = one.weights() | {"head.bias": torch.zeros(3)}
    folder.save(6, weights, one.state())
    with pytest.raises(ArtefactError, match=r"does not fit the model that config\.yaml builds: .*head\.bias"):
        train_toy(folder, resume=True)


def test_retention_keeps_the_newest_and_the_best(tmp_path):
    class Task(ToyTask):
        losses = iter([5.0, 3.0, 4.0, 4.0])

        def validate(self, model, data):
            return {"loss": next(self.losses)}

    folder = make_folder(tmp_path / "run")
    outcome = train_toy(
        folder, TrainConfig(steps=40, checkpoint_every=5, validate_every=10, keep=2), task=Task()
    )
    assert outcome.best_step == folder.checkpoint("best").step == 20
    assert [one.step for one in folder.checkpoints()] == [20, 35, 40]
    assert folder.checkpoint("best").step == outcome.best_step


def test_a_tiny_disk_that_fills_up_keeps_the_previous(tmp_path):
    """On a real file system of 120 kB where one can be mounted; elsewhere by a write that fails."""
    disk = tmp_path / "disk"
    disk.mkdir()
    if os.system(f"mount -t tmpfs -o size=120k weft-test {disk} 2>/dev/null") != 0:
        return  # the simulated full disk above is the test then
    try:
        folder = make_folder(disk / "run")
        with pytest.raises(
            ResourceError, match=r"The disk is full: .* needs [\d,]+ bytes, but [\d,]+ are free"
        ):
            train_toy(folder, replace(CONFIG, keep=50, checkpoint_every=2))
        assert folder.newest() is not None
        assert storage.FULL
    finally:
        os.system(f"umount {disk}")
