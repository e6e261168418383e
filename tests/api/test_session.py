import pytest
from tiny_runs import pairs, write_pairs

import weft
from weft.api.session import Sources, open_session
from weft.api.settings import parse_settings
from weft.core.errors import ConfigError, DataError


def settings(**data):
    return parse_settings({"task": "translate", "data": data})


def test_a_part_with_a_file_of_its_own_needs_no_other(tmp_path):
    path = str(write_pairs(tmp_path))
    sources = Sources(settings(train=["gone.tsv"], test=[path]))
    assert len(list(sources.part("test"))) == 64
    with pytest.raises(DataError, match=r"gone\.tsv"):
        sources.part("valid")


def test_parts_without_a_file_are_cut_from_the_training_file(tmp_path):
    sources = Sources(settings(train=[str(write_pairs(tmp_path))]))
    sizes = [len(list(sources.part(name))) for name in ("train", "valid", "test")]
    assert sum(sizes) == 64
    assert sizes[0] > sizes[1] > 0


def test_memory_has_parts_too():
    sources = Sources(settings(), {"train": pairs()})
    assert len(list(sources.part("train"))) < 64
    with pytest.raises(DataError, match="There is no test data"):
        Sources(settings()).part("test")


@pytest.mark.parametrize(
    ("train", "numbers"),
    [
        ({}, 4),
        ({"ema": 0.99}, 5),
        ({"optimizer": "sgd", "momentum": 0.9}, 3),
        ({"optimizer": "sgd"}, 2),
    ],
)
def test_a_model_is_refused_where_what_its_training_keeps_does_not_fit(train, numbers, monkeypatch):
    wanted = parse_settings({"task": "translate", "model": {"width": 8}, "train": train})
    parameters = sum(p.numel() for p in open_session(wanted, {"train": pairs()}).model.parameters())
    monkeypatch.setattr("weft.api.memory.memory_of", lambda device: 4 * numbers * parameters)
    open_session(wanted, {"train": pairs()})
    monkeypatch.setattr("weft.api.memory.memory_of", lambda device: 4 * numbers * parameters - 1)
    with pytest.raises(
        ConfigError, match=rf"{parameters:,} parameters take about .* GiB to train and cpu has"
    ):
        open_session(wanted, {"train": pairs()})


def test_a_run_is_used_where_it_could_not_be_trained(reverse_run, monkeypatch):
    parameters = weft.open(reverse_run).parameters
    monkeypatch.setattr("weft.api.memory.memory_of", lambda device: 4 * parameters)
    assert len(weft.open(reverse_run).predict(["abc"])) == 1
    monkeypatch.setattr("weft.api.memory.memory_of", lambda device: 4 * parameters - 1)
    with pytest.raises(ConfigError, match="GiB to use and cpu has"):
        weft.open(reverse_run)
