"""A checkpoint is whole or absent, and one changed byte is noticed."""

import random

import pytest
import torch

from weft.core.errors import ArtefactError
from weft.runs import Checkpoint, RunFolder
from weft.runs import checkpoint as checkpoints

FILES = [
    "model.safetensors",
    "optimizer.safetensors",
    "state.json",
    "manifest.json",
    "config.yaml",
    "tokenizer.json",
]


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config({"task": "toy"})
    folder.place("tokenizer.json", lambda path: path.write_text('{"kind": "char"}'))
    return folder


def save(folder, step, value=1.0, **options):
    state = {"x": torch.full((3,), value), "n": step}
    return folder.save(step, {"w": torch.full((2, 2), value)}, state, **options)


def flip_and_count_unnoticed(checkpoint: Checkpoint, name: str, positions: list[int]) -> int:
    """Change each of the bytes in turn; return how often verifying passed."""
    path = next(p for p in (checkpoint.path / name, checkpoint.run / name) if p.exists())
    data, passed = path.read_bytes(), 0
    for position in positions:
        changed = bytearray(data)
        changed[position] ^= 1 << position % 8
        path.write_bytes(changed)
        passed += not is_refused(checkpoint, name)
    path.write_bytes(data)
    return passed


def is_refused(checkpoint: Checkpoint, name: str) -> bool:
    try:
        checkpoint.verify()
    except ArtefactError as error:
        return name in str(error) and "\n" not in str(error)
    return False


@pytest.mark.parametrize("name", FILES)
def test_a_changed_byte_is_noticed_wherever_it_is(folder, name):
    checkpoint = save(folder, 1)
    path = next(p for p in (checkpoint.path / name, checkpoint.run / name) if p.exists())
    positions = random.Random(0).sample(range(path.stat().st_size), min(150, path.stat().st_size))
    assert flip_and_count_unnoticed(checkpoint, name, positions) == 0
    checkpoint.verify()


@pytest.mark.long
@pytest.mark.parametrize("name", FILES)
def test_every_changed_byte_of_every_file_is_noticed(folder, name):
    checkpoint = save(folder, 1)
    path = next(p for p in (checkpoint.path / name, checkpoint.run / name) if p.exists())
    assert flip_and_count_unnoticed(checkpoint, name, list(range(path.stat().st_size))) == 0


@pytest.mark.parametrize("name", FILES)
def test_a_missing_or_shortened_file_is_noticed(folder, name):
    checkpoint = save(folder, 1)
    path = next(p for p in (checkpoint.path / name, checkpoint.run / name) if p.exists())
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ArtefactError, match=name):
        checkpoint.verify()
    path.unlink()
    with pytest.raises(ArtefactError, match=name):
        checkpoint.verify()


def test_what_was_saved_comes_back(folder):
    checkpoint = save(folder, 7, 0.5)
    assert checkpoint.step == 7
    assert torch.equal(checkpoint.weights()["w"], torch.full((2, 2), 0.5))
    assert checkpoint.state()["n"] == 7
    assert torch.equal(checkpoint.state()["x"], torch.full((3,), 0.5))


def test_a_write_that_fails_leaves_nothing_behind(folder, monkeypatch):
    def fail(*arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(checkpoints, "write_file", fail)
    with pytest.raises(KeyboardInterrupt):
        save(folder, 1)
    assert list((folder.path / "checkpoints").iterdir()) == []


def test_saving_a_step_again_replaces_it(folder):
    save(folder, 3, 1.0)
    checkpoint = save(folder, 3, 2.0)
    checkpoint.verify()
    assert checkpoint.weights()["w"][0, 0].item() == 2.0


def test_an_average_has_no_state_to_resume_from(folder):
    mean = folder.save_average([save(folder, 1, 1.0), save(folder, 2, 4.0)])
    mean.verify()
    assert mean.weights()["w"][0, 0].item() == 2.5
    with pytest.raises(ArtefactError, match=r"holds weights only\. Resume from a step-… checkpoint"):
        mean.state()
