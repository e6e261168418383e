import pytest
from tiny_runs import pairs, write_pairs

from weft.api.session import Sources
from weft.api.settings import parse_settings
from weft.core.errors import DataError


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
