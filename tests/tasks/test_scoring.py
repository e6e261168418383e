"""Every token of a text scored once, whether it is read in a stream, in windows or line by line."""

import math

import numpy as np
import pytest
import torch

from weft.core.rng import numpy_stream
from weft.core.sequences import Sequences
from weft.data import EOS, Dataset, RaggedArray
from weft.models import build_causal, parse_model
from weft.ops.loss import IGNORE
from weft.tasks import scoring
from weft.tasks.scoring import (
    ShuffledWindows,
    joined_text,
    line_sums,
    lines_as_targets,
    score_batch,
    score_stream,
    score_windows,
)


class Field:
    kind, size = "text", 9


def lines(*rows: list[int]) -> Dataset:
    return Dataset({"text": RaggedArray.pack([np.array(row, np.int32) for row in rows])})


def causal(family: str, **options):
    torch.manual_seed(1)
    settings = {"family": family, "width": 8, "layers": 1, "dropout": 0, "input_dropout": 0, **options}
    return build_causal(Field(), Field.size, parse_model(settings, ("decoder",))).double().eval()


def by_definition(model, text: np.ndarray, context: list[int]) -> list[float]:
    """Return -log p of each token but the first, read behind `context[i]` tokens by one forward pass."""
    found = []
    for place, reach in enumerate(context, 1):
        given = torch.from_numpy(text[place - reach : place].astype(np.int64))[None]
        logits = model.head(model(Sequences.full(given))[0].data[0, -1])
        found.append(-float(torch.log_softmax(logits, 0)[text[place]]))
    return found


@pytest.fixture
def text() -> np.ndarray:
    return np.random.default_rng(0).integers(4, 9, 24).astype(np.int32)


def test_a_text_is_its_lines_with_an_end_before_and_after_each():
    data = lines([5, 6], [], [7])
    assert joined_text(data).tolist() == [EOS, 5, 6, EOS, EOS, 7, EOS]
    assert joined_text(data.select(np.array([2, 0]))).tolist() == [EOS, 7, EOS, 5, 6, EOS]


def test_a_line_by_itself_begins_and_ends_with_the_end():
    inputs, wanted = lines_as_targets(Sequences.pad([torch.tensor([5, 6]), torch.tensor([7])]))
    assert inputs.data[0].tolist() == [EOS, 5, 6]
    assert inputs.lengths.tolist() == [3, 2]
    assert wanted.tolist() == [[5, 6, EOS], [7, EOS, IGNORE]]


def test_sums_of_lines_count_the_end_of_each():
    assert line_sums(np.array([1, 2, 3, 4, 5, 6]), np.array([2, 0, 1])).tolist() == [6, 4, 11]


@pytest.mark.parametrize("family", ["lstm", "gru", "rnn", "tcn"])
@pytest.mark.parametrize("window", [1, 5, 40])
def test_a_stream_reads_every_token_behind_all_before_it(family, window, text):
    model = causal(family)
    with torch.no_grad():
        scores = score_stream(model, text, 1, window)
        expected = by_definition(model, text, list(range(1, len(text))))
    assert scores.nll == pytest.approx(expected, abs=1e-5)


def test_rows_of_a_stream_come_back_in_the_order_of_the_text(text):
    model = causal("gru")
    with torch.no_grad():
        scores = score_stream(model, text, 3, 4)  # 23 tokens in rows of 8, 8 and 7
        reach = [*range(1, 9), *range(1, 9), *range(1, 8)]
        assert scores.nll == pytest.approx(by_definition(model, text, reach), abs=1e-5)


@pytest.mark.parametrize("rows", [1, 2, 10])
@pytest.mark.parametrize("window", [1, 4, 7, 40])
def test_windows_give_every_token_at_least_half_a_window(rows, window, text):
    model = causal("transformer", heads=2)
    stride = max(1, window // 2)
    reach = [
        place if place <= window else window - stride + 1 + (place - window - 1) % stride
        for place in range(1, len(text))
    ]
    assert min(reach[window:], default=window) >= math.ceil(window / 2)
    with torch.no_grad():
        scores = score_windows(model, text, rows, window)
        expected = by_definition(model, text, reach)
    assert scores.nll == pytest.approx(expected, abs=1e-5)


def test_padding_is_not_scored(text):
    model = causal("lstm")
    inputs = Sequences(torch.from_numpy(text[None, :6].astype(np.int64)), torch.tensor([4]))
    wanted = torch.tensor([[5, 6, 7, 8, IGNORE, IGNORE]])
    nll, hit = score_batch(model, inputs, wanted)
    assert nll[0, 4:].tolist() == [0, 0]
    assert not hit[0, 4:].any()


def test_shuffled_windows_hold_every_token_and_move_with_the_epoch(text):
    feed = ShuffledWindows(text, rows=2, window=5, seed=3)
    for epoch in range(4):
        batches = [feed.batch(epoch, position) for position in range(feed.batches(epoch))]
        told = np.concatenate([row.numpy() for batch in batches for row in batch["target"].unpad()])
        assert sorted(told) == sorted(text[1:])
        for batch in batches:
            for given, next_ones in zip(batch["input"].unpad(), batch["target"].unpad(), strict=True):
                assert given[1:].tolist() == next_ones[:-1].tolist()
    again = ShuffledWindows(text, rows=2, window=5, seed=3).batch(1, 0)
    assert torch.equal(again["input"].data, feed.batch(1, 0)["input"].data)
    assert any(
        not torch.equal(feed.batch(0, 0)["input"].data, feed.batch(e, 0)["input"].data) for e in (1, 2)
    )


def test_windows_are_drawn_once_an_epoch(text, monkeypatch):
    drawn = []
    monkeypatch.setattr(
        scoring, "numpy_stream", lambda *names: drawn.append(names[2]) or numpy_stream(*names)
    )
    feed = ShuffledWindows(text, rows=2, window=5, seed=3)
    for epoch in (0, 1):
        for position in range(feed.batches(epoch)):
            feed.batch(epoch, position)
    assert drawn == [0, 1]
