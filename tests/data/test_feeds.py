import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ConfigError, DataError
from weft.core.sequences import Sequences
from weft.data.arrays import RaggedArray
from weft.data.feeds import BucketFeed, StreamFeed, WindowFeed
from weft.data.store import Dataset
from weft.data.vocabulary import EOS


def dataset(n=200):
    chance = np.random.default_rng(0)
    source = [np.full(chance.integers(1, 20), i, np.int32) for i in range(n)]
    target = [np.full(chance.integers(1, 20), i, np.int32) for i in range(n)]
    values = np.arange(n, dtype=np.float32)
    columns = {
        "value": RaggedArray(values),
        "source": RaggedArray.pack(source),
        "target": RaggedArray.pack(target),
    }
    return Dataset(columns)


def same(one, other):
    def tensors(batch):
        parts = [(v.data, v.lengths) if isinstance(v, Sequences) else (v,) for v in batch.values()]
        return [tensor for part in parts for tensor in part]

    return all(torch.equal(a, b) for a, b in zip(tensors(one), tensors(other), strict=True))


FEEDS = {
    "budget": lambda: BucketFeed(dataset(), budget=200, seed=3),
    "rows": lambda: BucketFeed(dataset(), rows=16, seed=3),
    "order": lambda: BucketFeed(dataset(), rows=16, shuffle=False),
    "stream": lambda: StreamFeed(np.arange(1000), rows=4, window=16),
    "items": lambda: StreamFeed(dataset().columns["source"], rows=4, window=16),
    "window": lambda: WindowFeed(np.random.rand(300, 2).astype(np.float32), 10, 5, rows=16, seed=3),
}


@pytest.mark.parametrize("name", FEEDS)
def test_a_pure_function_of_seed_epoch_and_position(name):
    np.random.seed(0)
    feed = FEEDS[name]()
    wanted = [(0, 2), (1, 0), (0, 1), (0, 2)]
    asked = [feed.batch(*key) for key in wanted]
    np.random.seed(0)
    fresh = FEEDS[name]()
    for key, batch in reversed(list(zip(wanted, asked, strict=True))):
        assert same(fresh.batch(*key), batch)
    assert feed.tokens(asked[0]) > 0


def test_every_item_once_an_epoch():
    feed = BucketFeed(dataset(), budget=200, seed=1)
    for epoch in (0, 1):
        batches = [feed.batch(epoch, i) for i in range(feed.batches(epoch))]
        assert sorted(torch.cat([batch["value"] for batch in batches]).tolist()) == list(range(200))
        total = sum(feed.tokens(batch) for batch in batches)
        assert total == feed.dataset.lengths("target").sum()
    indices = feed.indices(1, 3)
    assert feed.batch(1, 3)["value"].tolist() == indices.tolist()


def test_unshuffled_items_come_as_they_stand():
    for feed in (
        BucketFeed(dataset(), rows=7, shuffle=False),
        BucketFeed(dataset(), budget=90, shuffle=False),
    ):
        values = torch.cat([feed.batch(5, i)["value"] for i in range(feed.batches(5))])
        assert values.tolist() == list(range(200))


def test_tokens_of_a_target_without_length_are_rows():
    feed = BucketFeed(dataset(), rows=16, target="value")
    assert feed.tokens(feed.batch(0, 0)) == 16


def test_budget_without_sequences_counts_rows():
    feed = BucketFeed(Dataset({"value": RaggedArray(np.arange(10.0))}), budget=4)
    assert [len(feed.batch(0, i)["value"]) for i in range(feed.batches(0))].count(4) == 2


@pytest.mark.parametrize("sizes", [{}, {"budget": 10, "rows": 2}])
def test_budget_or_rows(sizes):
    with pytest.raises(ConfigError, match=r"by `budget`.*or by `rows`"):
        BucketFeed(dataset(), **sizes)


@pytest.mark.parametrize("sizes", [{"budget": 10**12}, {"rows": 10**12}])
def test_a_batch_beyond_memory(sizes, monkeypatch):
    monkeypatch.setattr("weft.data.sizes.memory_free", lambda: 10_000)
    BucketFeed(dataset(), budget=1000)
    with pytest.raises(DataError, match=r"The largest batch would take .* GB, but .* Set a smaller batch"):
        BucketFeed(dataset(), **sizes)


def test_a_stream_by_hand():
    feed = StreamFeed(np.array([10, 11, 12, 13, 14, 15, 16, 17]), rows=2, window=3)
    assert feed.batches(0) == 2
    first, second = feed.batch(0, 0), feed.batch(0, 1)
    assert first["input"].data.tolist() == [[10, 11, 12], [14, 15, 16]]
    assert first["target"].data.tolist() == [[11, 12, 13], [15, 16, 17]]
    assert second["input"].data.tolist() == [[13], [0]]
    assert second["target"].data.tolist() == [[14], [0]]
    assert second["target"].lengths.tolist() == [1, 0]
    assert first["fresh"].tolist() == [True, True]
    assert second["fresh"].tolist() == [False, False]
    assert feed.tokens(second) == 1


@given(
    st.lists(st.integers(0, 6), min_size=1, max_size=12), st.integers(1, 9), st.integers(1, 9), st.booleans()
)
def test_every_token_is_a_target_once_but_the_first(lengths, rows, window, joined):
    items = [np.arange(100 * i, 100 * i + n) for i, n in enumerate(lengths, 1)]
    text = [int(x) for item in items for x in ([*item, EOS] if joined else item)]
    if len(text) < 2:
        return
    feed = StreamFeed(RaggedArray.pack(items) if joined else np.array(text), rows, window)
    batches = [feed.batch(0, i) for i in range(feed.batches(0))]
    pieces = [
        [int(x) for batch in batches for x in batch["target"].unpad()[row]]
        for row in range(batches[0]["target"].batch_size)
    ]
    assert [x for piece in pieces for x in piece] == text[1:]
    given_pieces = [
        [int(x) for batch in batches for x in batch["input"].unpad()[row]]
        for row in range(batches[0]["input"].batch_size)
    ]
    assert [x for piece in given_pieces for x in piece] == text[:-1]
    assert max(map(len, pieces)) - min(map(len, pieces)) <= 1


def test_a_text_too_short():
    with pytest.raises(DataError, match="at least 2 tokens, but has 1"):
        StreamFeed(np.array([4]), 1, 1)
    with pytest.raises(ConfigError, match="must be at least 1, but are 0 and 3"):
        StreamFeed(np.arange(9), 0, 3)


def test_windows_by_hand():
    feed = WindowFeed(np.arange(7)[:, None], history=3, horizon=2, stride=2, rows=9, shuffle=False)
    batch = feed.batch(0, 0)
    assert batch["history"].squeeze(2).tolist() == [[0, 1, 2], [2, 3, 4]]
    assert batch["future"].squeeze(2).tolist() == [[3, 4], [5, 6]]
    assert feed.tokens(batch) == 4


def test_windows_stay_in_their_series():
    series = RaggedArray.pack([np.arange(4)[:, None], np.arange(10, 12)[:, None], np.arange(20, 24)[:, None]])
    feed = WindowFeed(series, history=2, horizon=1, rows=9, shuffle=False)
    whole = torch.cat(list(feed.batch(0, 0).values()), 1).squeeze(2)
    assert whole.tolist() == [[0, 1, 2], [1, 2, 3], [20, 21, 22], [21, 22, 23]]


def test_every_window_once_an_epoch():
    feed = WindowFeed(np.arange(50)[:, None], history=4, horizon=2, rows=8, seed=5)
    epochs = [
        torch.cat([feed.batch(epoch, i)["history"][:, 0, 0] for i in range(feed.batches(epoch))]).tolist()
        for epoch in (0, 1)
    ]
    assert sorted(epochs[0]) == sorted(epochs[1]) == list(range(45))
    assert epochs[0] != epochs[1]


def test_a_series_too_short():
    with pytest.raises(DataError, match="history \\+ horizon = 12 steps, but the longest series has 9"):
        WindowFeed(np.zeros((9, 1)), 8, 4)
    with pytest.raises(ConfigError, match="must be at least 1, but are 8, 0, 1 and 32"):
        WindowFeed(np.zeros((9, 1)), 8, 0)
