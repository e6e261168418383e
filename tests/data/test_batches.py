import time

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.data.arrays import RaggedArray, write_ragged
from weft.data.batches import collate, padding_waste, plan_batches, plan_in_order, plan_rows
from weft.data.fit import FieldOptions, fit_field
from weft.data.source import RowSource
from weft.data.store import Dataset


def padded(lengths, batch):
    return len(batch) * lengths[batch].max(0).sum()


def some_lengths(n=3000, fields=2, seed=0):
    chance = np.random.default_rng(seed)
    return chance.poisson(12, (n, 1)) + chance.poisson(2, (n, fields)) + 1


def pairs_kept(one, other):
    """Return the share of pairs of items together in a batch of `one` that are so in `other` too."""
    place = np.empty((2, sum(map(len, one))), np.int64)
    for row, plan in zip(place, (one, other), strict=True):
        for i, batch in enumerate(plan):
            row[batch] = i
    common = np.zeros((len(one), len(other)))
    np.add.at(common, tuple(place), 1)
    sizes = np.array([len(batch) for batch in one])
    return (common * (common - 1)).sum() / (sizes * (sizes - 1)).sum()


@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), min_size=1, max_size=80),
    st.integers(1, 200),
    st.integers(0, 3),
)
def test_every_item_once_and_never_over_budget(lengths, budget, epoch):
    sizes = np.array(lengths, np.int64)
    plan = plan_batches(sizes, budget, 0, epoch)
    assert sorted(np.concatenate(plan).tolist()) == list(range(len(sizes)))
    for batch in plan:
        assert len(batch) == 1 or padded(sizes, batch) <= budget


def test_worked_by_hand():
    lengths = np.array([[2], [9], [2], [3], [9]])
    plan = plan_in_order(lengths, 10, None)
    assert [batch.tolist() for batch in plan] == [[0], [1], [2, 3], [4]]
    assert padding_waste(lengths, plan) == pytest.approx(1 - 25 / 26)


def test_a_pure_function_of_seed_and_epoch():
    lengths = some_lengths()
    same, again, epoch, seed = (plan_batches(lengths, 500, *key) for key in ((1, 2), (1, 2), (1, 3), (2, 2)))
    assert all(np.array_equal(a, b) for a, b in zip(same, again, strict=True))
    assert [b.tolist() for b in epoch] != [b.tolist() for b in same] != [b.tolist() for b in seed]


def test_batches_come_in_random_order():
    lengths = some_lengths()
    longest = [lengths[batch].max() for batch in plan_batches(lengths, 500, 0, 0)]
    place = np.arange(len(longest))
    assert abs(np.corrcoef(place, longest)[0, 1]) < 0.3


@pytest.mark.parametrize("fields", [1, 2, 3])
def test_little_is_wasted(fields):
    lengths = some_lengths(20000, fields)
    assert padding_waste(lengths, plan_batches(lengths, 1000, 0, 0)) < (0.005, 0.03, 0.09)[fields - 1]


def test_long_and_scattered_lengths():
    chance = np.random.default_rng(0)
    source = (chance.lognormal(5, 0.7, 10000) + 1).astype(np.int64)
    lengths = np.stack([source, np.maximum(source // 4 + chance.integers(-9, 9, 10000), 1)], 1)
    assert padding_waste(lengths, plan_batches(lengths, 8192, 0, 0)) < 0.06


def test_noise_mixes_more_and_pads_more():
    lengths = some_lengths(5000)
    plain = [plan_batches(lengths, 1000, 0, epoch) for epoch in (0, 1)]
    noisy = [plan_batches(lengths, 1000, 0, epoch, noise=0.2) for epoch in (0, 1)]
    assert pairs_kept(*noisy) < pairs_kept(*plain) / 3
    assert padding_waste(lengths, noisy[0]) > padding_waste(lengths, plain[0])


def test_by_rows():
    lengths = some_lengths(103)
    plan = plan_rows(lengths, 10, 0, 0)
    assert sorted(map(len, plan)) == [3, *[10] * 10]
    assert sorted(np.concatenate(plan).tolist()) == list(range(103))
    assert padding_waste(lengths, plan) < padding_waste(lengths, plan_in_order(lengths, None, 10))


def test_items_without_length_are_shuffled():
    plan = plan_rows(np.zeros((100, 0), np.int64), 10, 0, 0)
    order = np.concatenate(plan)
    assert sorted(order.tolist()) == list(range(100))
    assert np.abs(np.corrcoef(order, np.arange(100))[0, 1]) < 0.3


@pytest.mark.parametrize(
    ("plan", "what"), [(plan_batches, "budget of at least 1"), (plan_rows, "at least 1 row")]
)
def test_no_room(plan, what):
    with pytest.raises(ConfigError, match=what):
        plan(some_lengths(3), 0, 0, 0)


DATASET = Dataset(
    {
        "ids": RaggedArray.pack([np.array(x, np.int32) for x in ([1, 2], [], [3], [4, 5, 6])]),
        "frames": RaggedArray.pack([np.full((n, 2), n, np.uint8) for n in (1, 2, 3, 4)]),
        "value": RaggedArray(np.array([0.5, 1.5, 2.5, 3.5], np.float32)),
        "marks": RaggedArray(np.arange(8, dtype=np.float32).reshape(4, 2)),
    }
)


def test_collating():
    batch = collate(DATASET, np.array([3, 1, 0]))
    ids, frames = batch["ids"], batch["frames"]
    assert isinstance(ids, Sequences)
    assert isinstance(frames, Sequences)
    assert ids.data.tolist() == [[4, 5, 6], [0, 0, 0], [1, 2, 0]]
    assert ids.data.dtype == ids.lengths.dtype == torch.int64
    assert ids.lengths.tolist() == [3, 0, 2]
    assert frames.data[2].tolist() == [[1, 1], [0, 0], [0, 0], [0, 0]]
    assert frames.data.dtype == torch.uint8
    assert batch["value"].tolist() == [3.5, 1.5, 0.5]
    assert batch["marks"].tolist() == [[6, 7], [2, 3], [0, 1]]


def test_collating_a_view():
    view = DATASET.select(np.array([2, 0]))
    batch = collate(view, np.array([1]))
    ids = batch["ids"]
    assert isinstance(ids, Sequences)
    assert ids.data.tolist() == [[1, 2]]


def test_collating_nothing_but_empty_rows():
    ids = collate(DATASET, np.array([1]))["ids"]
    assert isinstance(ids, Sequences)
    assert ids.data.shape == (1, 0)


@pytest.fixture(scope="module")
def translations(data_file):
    """Return the lengths of 29,000 English-German pairs in subwords."""
    paths = [data_file(f"multi30k/train.{language}.gz") for language in ("en", "de")]
    rows = list(RowSource(paths, kinds=("text", "text")))
    columns = [[row.values[i] for row in rows] for i in (0, 1)]
    fields = [fit_field("text", iter(column), FieldOptions(vocabulary=8000)) for column in columns]
    pairs = zip(fields, columns, strict=True)
    return np.array([[len(field.encode(text)) for text in column] for field, column in pairs]).T


def test_waste_on_real_translations(translations):
    plans = [plan_batches(translations, 4096, 0, epoch) for epoch in range(3)]
    assert max(padding_waste(translations, plan) for plan in plans) <= 0.03
    assert max(padded(translations, batch) for plan in plans for batch in plan) <= 4096
    fill = np.mean([padded(translations, batch) for batch in plans[0]]) / 4096
    assert fill > 0.9  # small waste is not bought with small batches
    assert pairs_kept(plans[0], plans[1]) < 0.5  # of two sentences in a batch, most part by the next epoch


def test_a_batch_of_4096_takes_well_under_a_millisecond(tmp_path):
    lengths = some_lengths(3000)
    items = {name: [np.ones(n, np.int32) for n in lengths[:, i]] for i, name in enumerate("xy")}
    dataset = Dataset({name: write_ragged(items[name], tmp_path / name, np.int32) for name in items})
    times = []
    for batch in plan_batches(lengths, 4096, 0, 0):
        start = time.process_time()
        collate(dataset, batch)
        times.append(time.process_time() - start)
    assert np.median(times) < 1e-3
