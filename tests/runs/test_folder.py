"""A run's folder: its names, its pointers, its checkpoints."""

import os
import shutil

import pytest
import torch

from weft.core.errors import ArtefactError, InputError, ResourceError
from weft.runs import RunFolder, pointers
from weft.runs import folder as folders
from weft.runs import manifest as manifests


@pytest.fixture
def folder(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config({"task": "toy", "train": {"steps": 3}})
    return folder


def save(folder, step, scheduled=True):
    return folder.save(step, {"w": torch.full((2,), float(step))}, {"n": step}, scheduled)


def steps(folder):
    return [checkpoint.step for checkpoint in folder.checkpoints()]


def test_fresh_names_count_up(tmp_path):
    names = [RunFolder.create(name="tag-gru", root=tmp_path).path.name for _ in range(3)]
    assert names == ["tag-gru-01", "tag-gru-02", "tag-gru-03"]


def test_a_new_run_wants_an_empty_folder(tmp_path):
    RunFolder.create(tmp_path / "new")
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(InputError, match=r"holds files already\. Choose another `run=`"):
        RunFolder.create(tmp_path)


def test_a_folder_without_a_run_is_not_opened(tmp_path):
    with pytest.raises(InputError, match=r"holds a config\.yaml, but .* does not"):
        RunFolder.open(tmp_path)


def test_config_comes_back(folder):
    assert RunFolder.open(folder.path).config() == {"task": "toy", "train": {"steps": 3}}
    (folder.path / "config.yaml").write_bytes(b"\xff")
    with pytest.raises(ArtefactError, match=r"config\.yaml cannot be read"):
        folder.config()


def test_a_new_config_leaves_checkpoints_valid_and_a_foreign_hand_does_not(folder):
    checkpoint = save(folder, 1)
    folder.write_config({"task": "toy", "train": {"steps": 9}})
    checkpoint.verify()
    (folder.path / "config.yaml").write_text("task: other\n")
    with pytest.raises(ArtefactError, match=r"config\.yaml is damaged"):
        checkpoint.verify()


@pytest.mark.parametrize("call", range(1, 6))
def test_a_new_config_cut_short_anywhere_leaves_checkpoints_valid(folder, monkeypatch, call):
    made = [save(folder, 1), save(folder, 2)]
    calls = iter(range(1, 100))
    real = folders.replace_file

    def dies(path, data):
        if next(calls) == call:
            raise KeyboardInterrupt
        real(path, data)

    monkeypatch.setattr(folders, "replace_file", dies)
    with pytest.raises(KeyboardInterrupt):
        folder.write_config({"task": "toy", "train": {"steps": 9}})
    for checkpoint in made:
        checkpoint.verify()


def test_a_file_is_placed_whole_or_not_at_all(folder):
    def half(path):
        path.write_text("half")
        raise OSError(28, "No space left on device")

    folder.place("tokenizer.json", lambda path: path.write_text("whole"))
    with pytest.raises(ResourceError, match="The disk is full"):
        folder.place("tokenizer.json", half)
    assert folder.tokenizer_path.read_text() == "whole"
    assert sorted(os.listdir(folder.path)) == ["config.yaml", "tokenizer.json"]


def test_pointers_are_relative_and_follow_a_moved_run(folder, tmp_path):
    folder.point("best", save(folder, 1))
    save(folder, 2)
    assert os.readlink(folder.path / "best") == "checkpoints/step-00000001"
    shutil.move(folder.path, tmp_path / "moved")
    moved = RunFolder.open(tmp_path / "moved")
    assert (moved.checkpoint("best").step, moved.checkpoint("last").step) == (1, 2)


def test_where_links_are_impossible_a_file_points(folder, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(pointers.os, "symlink", refuse)
    save(folder, 1)
    assert (folder.path / "last").read_text() == "checkpoints/step-00000001"
    assert folder.checkpoint("last").step == 1


def test_a_copy_that_followed_the_links_can_be_used_and_trained(folder, tmp_path):
    folder.point("best", save(folder, 1))
    shutil.copytree(folder.path, tmp_path / "copy")  # links become folders
    copy = RunFolder.open(tmp_path / "copy")
    assert not (copy.path / "best").is_symlink()
    assert copy.checkpoint("best").weights()["w"][0].item() == 1.0
    save(copy, 2)
    assert copy.checkpoint("last").step == 2


def test_checkpoints_are_found_by_name_and_step(folder):
    save(folder, 5)
    assert folder.checkpoint("5").step == folder.checkpoint("step-00000005").step == 5
    assert folder.checkpoint("best").step == 5  # nothing is best yet: the newest
    with pytest.raises(InputError, match=r"has no checkpoint `step-00000006`\. Known: step-00000005"):
        folder.checkpoint("6")


def test_retention_spares_the_newest_the_scheduled_and_the_best(folder):
    for step in (1, 2, 3, 4):
        save(folder, step)
    save(folder, 5, scheduled=False)
    save(folder, 6, scheduled=False)
    folder.point("best", folder.checkpoint("1"))
    folder.retain(2)
    assert steps(folder) == [1, 3, 4, 6]
    assert not list(folder.path.glob("checkpoints/.*"))


def test_weights_are_those_of_best_though_it_moves_while_they_are_read(folder, monkeypatch):
    first, second = save(folder, 1), save(folder, 2)
    folder.point("best", first)
    read = type(first).weights

    def read_late(checkpoint):
        if checkpoint.path == first.path:  # a training finds a better one, and removes this
            folder.point("best", second)
            shutil.rmtree(first.path)
        return read(checkpoint)

    monkeypatch.setattr(type(first), "weights", read_late)
    assert folder.weights("best")["w"].tolist() == [2.0, 2.0]


def test_damaged_newest_ones_are_passed_over_with_a_word_each(folder):
    for step in (1, 2, 3):
        save(folder, step)
    for step in (2, 3):
        (folder.checkpoint(str(step)).path / "state.json").write_text("{}")
    words = []
    assert folder.newest(words.append).step == 1
    assert [word[-14:] for word in words] == ["step-00000003.", "step-00000002."]
    folder.set_aside_after(1)
    assert steps(folder) == [1]
    assert (folder.path / "checkpoints/damaged-step-00000003").is_dir()


def test_a_newer_format_is_not_passed_over(folder, monkeypatch):
    save(folder, 1)
    monkeypatch.setattr(manifests, "FORMAT", 2)
    newer = manifests.Manifest(2, True, format=2)
    (folder.path / "checkpoints/step-00000002").mkdir()
    (folder.path / "checkpoints/step-00000002/manifest.json").write_text(manifests.render(newer))
    monkeypatch.setattr(manifests, "FORMAT", 1)
    with pytest.raises(ArtefactError, match="Upgrade weft"):
        folder.newest()


def test_leftovers_of_a_kill_are_cleared(folder):
    save(folder, 1)
    (folder.path / "checkpoints/.step-00000002.part").mkdir()
    folder.clear_leftovers()
    assert os.listdir(folder.path / "checkpoints") == ["step-00000001"]
