"""Splits: a pure function of the input, duplicates on one side, nothing lost."""

import hashlib
import subprocess
import sys

import numpy as np
import pytest

from weft.core.errors import ConfigError, DataError
from weft.data.lines import FaultList
from weft.data.source import RowSource
from weft.data.split import PARTS, PositionRows, SplitRows, bucket, hash_split


def source(count=1000):
    return RowSource.from_memory([(f"text {i % 700}", f"target {i}") for i in range(count)], ("text", "text"))


def test_the_bucket_is_the_first_bits_of_sha256():
    digits = hashlib.sha256("häuser".encode()).hexdigest()
    assert bucket("häuser") == pytest.approx(int(digits[:13], 16) / 16**13, abs=1e-15)
    assert 0 <= bucket("") < 1


def test_the_bucket_is_the_same_in_another_process():
    code = "from weft.data.split import bucket; print(repr(bucket('a')))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(out) == bucket("a")


def test_words_and_arrays_have_buckets():
    assert bucket(["a", "b"]) == bucket(["a", "b"]) != bucket(["ab"])
    one = np.arange(4, dtype=np.float32)
    assert bucket(one) == bucket(one.copy()) != bucket(one.reshape(2, 2))


def test_parts_hold_every_row_once_in_its_order():
    parts = [[row.number for row in SplitRows(source(), part)] for part in PARTS]
    assert sorted(number for part in parts for number in part) == list(range(1, 1001))
    assert all(part == sorted(part) for part in parts)


def test_shares_are_near_the_fractions():
    part = hash_split((0.8, 0.1, 0.1))
    found = [part(f"row {i}") for i in range(20000)]
    assert [found.count(name) / 20000 for name in PARTS] == pytest.approx([0.8, 0.1, 0.1], abs=0.01)


def test_duplicates_stay_on_one_side():
    inputs = [{row.values[0] for row in SplitRows(source(), part)} for part in PARTS]
    assert not inputs[0] & inputs[1]
    assert not inputs[0] & inputs[2]
    assert not inputs[1] & inputs[2]


def test_a_view_reads_anew_and_describes_itself():
    view = SplitRows(source(), "valid")
    assert [row.number for row in view] == [row.number for row in view]
    assert view.kinds == ("text", "text")
    assert view.description.endswith("valid: 10% by a hash of the input")
    assert len(list(view.collecting(FaultList()))) == len(list(view))


def test_a_part_without_rows_is_refused():
    few = RowSource.from_memory([("a", "b")], ("text", "text"))
    empty = next(part for part in PARTS if hash_split()("a") != part)
    why = "a hash of the input decides, so equal inputs stay together"
    with pytest.raises(
        DataError, match=rf"The part `{empty}` gets no row of memory: {why}\. .* data\.{empty}="
    ):
        list(SplitRows(few, empty))


@pytest.mark.parametrize("fractions", [(0.8, 0.1), (0.9, 0.2, -0.1), (0.5, 0.1, 0.1)])
def test_wrong_fractions_are_refused(fractions):
    with pytest.raises(ConfigError, match=r"three shares adding up to 1.* Try 0\.8, 0\.1, 0\.1"):
        hash_split(fractions)


def test_a_wrong_part_is_refused():
    with pytest.raises(ConfigError, match="There is no part `dev`"):
        SplitRows(source(), "dev")


def test_positions_cut_a_text_where_a_part_begins():
    text = RowSource.from_memory(["abcd"] * 20, ("text",))  # 5 characters a line with its end: 100
    places = {part: [row.number for row in PositionRows(text, part, (0.85, 0.05, 0.1))] for part in PARTS}
    assert places == {"train": list(range(1, 18)), "valid": [18], "test": [19, 20]}


def test_positions_lose_no_line():
    text = RowSource.from_memory(["x" * (i * 7 % 13) for i in range(200)], ("text",))
    found = [row.number for part in PARTS for row in PositionRows(text, part)]
    assert found == list(range(1, 201))
