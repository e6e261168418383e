import itertools

import pytest

from weft.core.config import parse
from weft.core.errors import ConfigError, DataError
from weft.data import FieldOptions, Limits, ReadOptions
from weft.tasks import DataConfig, open_parts

SCHEMA = {"source": "text", "target": "text"}
PAIRS = [(f"source {i}", f"target {i}") for i in range(200)]


def config(**values) -> DataConfig:
    return parse(DataConfig, values, "data")


def numbers(rows) -> list[int]:
    return [row.number for row in rows]


@pytest.fixture
def write(tmp_path):
    def write(name: str, pairs=PAIRS) -> str:
        path = tmp_path / name
        path.write_text("".join(f"{a}\t{b}\n" for a, b in pairs), encoding="utf-8")
        return str(path)

    return write


def test_one_file_is_cut_into_three_disjoint_parts(write):
    parts = open_parts(config(train=write("a.tsv")), SCHEMA)
    found = [numbers(part) for part in (parts.train, parts.valid, parts.test)]
    assert sorted(itertools.chain(*found)) == list(range(1, 201))
    assert 140 <= len(found[0]) <= 180
    assert min(len(part) for part in found[1:]) >= 8


def test_equal_inputs_stay_together(write):
    twice = [(a, f"{b} again") for a, b in PAIRS]
    parts = open_parts(config(train=write("a.tsv", PAIRS + twice)), SCHEMA)
    sides = [{row.values[0] for row in part} for part in (parts.train, parts.valid, parts.test)]
    assert not sides[0] & sides[1]
    assert not sides[0] & sides[2]
    assert not sides[1] & sides[2]


def test_cut_by_position_keeps_the_order(write):
    parts = open_parts(config(train=write("a.tsv"), split="position", fractions=[0.5, 0.25, 0.25]), SCHEMA)
    found = itertools.chain(*map(numbers, (parts.train, parts.valid, parts.test)))
    assert list(found) == list(range(1, 201))
    assert len(numbers(parts.valid)) == pytest.approx(50, abs=3)


def test_files_of_their_own_leave_the_training_file_whole(write):
    some = config(train=write("a.tsv"), valid=write("b.tsv", PAIRS[:5]), test=write("c.tsv", PAIRS[:7]))
    parts = open_parts(some, SCHEMA)
    assert [len(numbers(part)) for part in (parts.train, parts.valid, parts.test)] == [200, 5, 7]


def test_a_missing_validation_gets_its_share_and_the_rest_trains(write):
    parts = open_parts(config(train=write("a.tsv"), test=write("b.tsv", PAIRS[:5])), SCHEMA)
    assert len(numbers(parts.test)) == 5
    train, valid = numbers(parts.train), numbers(parts.valid)
    assert sorted(train + valid) == list(range(1, len(PAIRS) + 1))
    assert len(train) > len(valid) > 0


def test_a_validation_file_leaves_the_training_file_whole(write):
    parts = open_parts(config(train=write("a.tsv"), valid=write("b.tsv", PAIRS[:5])), SCHEMA)
    assert numbers(parts.train) == list(range(1, len(PAIRS) + 1))
    assert len(numbers(parts.valid)) == 5
    assert parts.test is None


def test_a_share_of_nothing_is_no_part(write):
    parts = open_parts(config(train=write("a.tsv"), fractions=[1, 0, 0]), SCHEMA)
    assert len(numbers(parts.train)) == 200
    assert parts.valid is parts.test is None


def test_without_a_training_file_there_is_nothing_to_cut(write):
    parts = open_parts(config(test=write("a.tsv")), SCHEMA)
    assert parts.train is parts.valid is None
    assert len(numbers(parts.test)) == 200


def test_memory_stands_for_files():
    parts = open_parts(config(fractions=[0.5, 0.5, 0]), SCHEMA, {"train": PAIRS, "test": PAIRS[:3]})
    assert len(numbers(parts.test)) == 3
    assert len(numbers(parts.train)) + len(numbers(parts.valid)) == 200


def test_each_owner_gets_its_share_of_the_section():
    some = config(tokens="char", columns=["2", "1"], vocabulary=99)
    assert some.share(FieldOptions) == FieldOptions(tokens="char", vocabulary=99)
    assert some.share(ReadOptions) == ReadOptions(columns=("2", "1"))
    assert some.share(Limits) == Limits()


@pytest.mark.parametrize(
    ("fractions", "message"),
    [
        ([0.5, 0.5], r"`data.fractions` must be three shares, but is \(0.5, 0.5\). Try 0.8,0.1,0.1."),
        ([0.5, 0.1, 0.1], r"`fractions` must be three shares adding up to 1, but is \(0.5, 0.1, 0.1\)"),
    ],
)
def test_shares_that_are_none_are_refused(fractions, message):
    with pytest.raises(ConfigError, match=message):
        open_parts(config(fractions=fractions), SCHEMA, {"train": PAIRS})


def test_a_share_above_one_is_refused():
    with pytest.raises(ConfigError, match=r"`data\.fractions` must be at most 1, but is 2\.0\."):
        config(fractions=[2, 0, 0])


def test_a_part_without_rows_says_so():
    parts = open_parts(config(), SCHEMA, {"train": PAIRS[:1]})
    with pytest.raises(
        DataError, match=r"The part `\w+` gets no row of memory.*\. Give more rows, or a file of its own"
    ):
        [numbers(part) for part in (parts.train, parts.valid, parts.test)]
