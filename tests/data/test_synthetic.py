"""Synthetic sets: right answers, disjoint parts, the same from the same seed, nothing half-written."""

from datetime import date

import numpy as np
import pytest

from weft.core.errors import ConfigError, DataError
from weft.data.dates import spell, spellings
from weft.data.source import RowSource
from weft.data.synthetic import make


def pairs(path):
    return [row.values for row in RowSource(path, kinds=("text", "text"))]


def test_dates_have_the_sizes_asked_for(tmp_path):
    found = make("dates", 300, 1, tmp_path, held_out=50)
    assert {part: len(pairs(path)) for part, path in found.items()} == {"train": 300, "valid": 50, "test": 50}


def test_no_date_of_one_part_stands_in_another(tmp_path):
    found = make("dates", 3000, 1, tmp_path)
    dates = {part: {target for _, target in pairs(path)} for part, path in found.items()}
    assert len(dates["test"]) > 250
    assert not dates["train"] & dates["test"]
    assert not dates["train"] & dates["valid"]
    assert not dates["valid"] & dates["test"]


def test_dates_are_spelt_right_and_aligned(tmp_path):
    found = make("dates", 200, 2, tmp_path)
    alignments = (tmp_path / "train.align").read_text().splitlines()
    for (source, target), line in zip(pairs(found["train"]), alignments, strict=True):
        when = date.fromisoformat(target)
        sources = next(
            places for form in spellings() for text, places in [spell(when, form)] if text == source
        )
        expected = [(i, j) for j, places in enumerate(sources) for i in places]
        assert [tuple(map(int, pair.split("-"))) for pair in line.split()] == expected


def test_many_spellings_are_used(tmp_path):
    when = [source for source, _ in pairs(make("dates", 500, 3, tmp_path)["train"])]
    assert any("third" in text for text in when)
    assert any(text.lower().startswith("the ") for text in when)
    assert any("Wednesday" in text for text in when)


def test_adding_adds_the_two_marked(tmp_path):
    found = make("adding", 40, 1, tmp_path, length=11)
    rows = [row.values for row in RowSource(found["train"], kinds=("values", "value"))]
    assert len(rows) == 40
    for values, target in rows:
        assert values.shape == (11, 2)
        marks = np.flatnonzero(values[:, 1])
        assert marks[0] < 5 <= marks[1]
        assert len(marks) == 2
        assert target == pytest.approx(values[marks, 0].sum(), abs=1e-6)


@pytest.mark.parametrize(("name", "step"), [("copy", 1), ("reverse", -1)])
def test_symbols_come_back(tmp_path, name, step):
    found = make(name, 100, 1, tmp_path, length=8)
    rows = pairs(found["train"])
    assert all(target.split() == source.split()[::step] for source, target in rows)
    assert {len(source.split()) for source, _ in rows} == {4, 5, 6, 7, 8}
    assert not {source for source, _ in rows} & {source for source, _ in pairs(found["test"])}


@pytest.mark.parametrize("name", ["dates", "adding", "copy", "reverse"])
def test_the_same_seed_gives_the_same_files(tmp_path, name):
    found = [make(name, 20, seed, tmp_path / place) for seed, place in ((1, "a"), (1, "b"), (2, "c"))]
    content = [[path.read_bytes() for path in paths.values()] for paths in found]
    if name != "adding":  # a .npz carries the time it was written
        assert content[0] == content[1]
    else:
        same = [np.load(paths["train"])["values"] for paths in found[:2]]
        assert np.array_equal(*same)
    assert content[0] != content[2]


def test_nothing_half_written_is_left(tmp_path):
    make("dates", 10, 1, tmp_path)
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"{part}.{end}" for part in ("train", "valid", "test") for end in ("tsv", "align")}


@pytest.mark.parametrize(
    ("name", "options", "error", "message"),
    [
        ("date", {"n": 10}, ConfigError, "no synthetic data set `date`. Did you mean `dates`"),
        ("copy", {"n": 0}, ConfigError, "`n` must be at least 1, but is 0"),
        ("copy", {"n": 5, "length": 1}, ConfigError, "`length` must be at least 2, but is 1"),
        ("copy", {"n": 5, "held_out": 0}, ConfigError, "`held_out` must be at least 1"),
        ("adding", {"n": 10**12}, DataError, "of memory is free. Ask for a smaller `n`"),
        ("copy", {"n": 10**15}, DataError, "of disk, but"),
    ],
)
def test_wrong_wishes_are_refused_before_work(tmp_path, name, options, error, message):
    with pytest.raises(error, match=message.replace(".", r"\.").replace("?", r"\?")):
        make(name, seed=1, directory=tmp_path / "new", **options)
    assert not (tmp_path / "new").exists()
