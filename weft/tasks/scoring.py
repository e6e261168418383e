"""How likely a causal model finds every token of a text: in one stream, in windows, or line by line."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch

from weft.core.rng import numpy_stream
from weft.core.sequences import Sequences
from weft.core.shapes import Bool, Float, Int, Tensor
from weft.data import EOS, Dataset, StreamFeed
from weft.data.batches import Batch
from weft.metrics.measure import Measurement, columns, metric_of_sums, ratio
from weft.models import CausalModel, log_probabilities
from weft.ops.loss import IGNORE
from weft.tasks.running import to_device
from weft.tasks.text_cache import TextCache


class Scores(NamedTuple):
    """One entry a token: how surprising it was, in nats, and whether it was the likeliest."""

    nll: np.ndarray
    hit: np.ndarray

    @classmethod
    def join(cls, parts: Iterable[Scores]) -> Scores:
        """Lay scores end to end."""
        return cls(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def joined_text(data: Dataset) -> np.ndarray:
    """Return the lines of a data set as one array: EOS, then each line and an EOS after it."""
    column = data.columns["text"]
    if data.rows is not None:
        column = type(column).pack(column.take(data.rows.tolist()))
    assert column.offsets is not None  # a text is ragged
    text = np.insert(column.flat, column.offsets[1:], EOS)
    return np.concatenate([np.array([EOS], text.dtype), text])


def lines_as_targets(lines: Sequences) -> tuple[Sequences, Int[Tensor, "B T"]]:
    """Return inputs EOS y_1 .. y_n, and what each step must say: y_1 .. y_n EOS, IGNORE after."""
    end = lines.data.new_full((lines.batch_size, 1), EOS)
    inputs = Sequences(torch.cat([end, lines.data], dim=1), lines.lengths + 1)
    wanted = torch.cat([lines.fill(IGNORE).data, torch.full_like(end, IGNORE)], dim=1)
    return inputs, wanted.scatter(1, lines.lengths.unsqueeze(1), EOS)


def score_batch(
    model: CausalModel, inputs: Sequences, wanted: Int[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Return the nll of every wanted token, 0 where it is IGNORE, and whether it was the likeliest."""
    return judge(log_probabilities(model.head(model(inputs)[0].data)), wanted)


def judge(
    log_p: Float[Tensor, "B T V"], wanted: Int[Tensor, "B T"]
) -> tuple[Float[Tensor, "B T"], Bool[Tensor, "B T"]]:
    """Hold log-probabilities against the tokens that came."""
    nll = torch.nn.functional.nll_loss(log_p.mT, wanted, reduction="none", ignore_index=IGNORE)
    return nll, log_p.argmax(-1) == wanted


def _valid(nll: Tensor, hit: Tensor, mask: Tensor) -> Scores:
    """Take the entries under the mask, row after row."""
    return Scores(nll[mask].double().cpu().numpy(), hit[mask].cpu().numpy())


def score_stream(
    model: CausalModel, text: np.ndarray, rows: int, window: int, cache: TextCache | None = None
) -> Scores:
    """Score every token but the first, the state (and the cache) carried from window to window.

    With one row nothing is forgotten; with more each row's piece of the text starts anew.
    """
    feed, device = StreamFeed(text, rows, window), _device(model)
    parts, state, past = [], None, None
    for position in range(feed.batches(0)):
        batch: Any = to_device(feed.batch(0, position), device)
        wanted = batch["target"].data
        y, state = model(batch["input"], state)
        log_p = log_probabilities(model.head(y.data))
        if cache is not None:
            log_p, past = cache.mix(log_p, y.data, wanted, past)
        parts.append((*judge(log_p, wanted), batch["input"].mask()))
    return _valid(*(torch.cat(column, dim=1) for column in zip(*parts, strict=True)))


def score_windows(model: CausalModel, text: np.ndarray, rows: int, window: int) -> Scores:
    """Score every token but the first for a model that keeps no state.

    Windows overlap by half: every token is scored once, behind at least window / 2 others (those at
    the start behind all there are) and at most a whole window of them.
    """
    stride, device, pairs = max(1, window // 2), _device(model), len(text) - 1
    count = 1 + max(0, -(-(pairs - window) // stride))
    parts = []
    for first in range(0, count, rows):
        starts = np.arange(first, min(first + rows, count)) * stride
        inputs, wanted = windows_of(text, starts, window)
        known = torch.from_numpy(np.where(starts > 0, window - stride, 0))  # scored by the window before
        steps = torch.arange(inputs.max_length)
        mask = inputs.mask() & (steps >= known.unsqueeze(1))
        nll, hit = score_batch(model, inputs.to(device), wanted.to(device))
        parts.append(_valid(nll, hit, mask.to(device)))
    return Scores.join(parts)


def windows_of(
    text: np.ndarray, starts: np.ndarray, window: int | np.ndarray
) -> tuple[Sequences, Int[Tensor, "B T"]]:
    """Return the windows that begin at `starts`, and the token after each of theirs."""
    lengths = np.minimum(window, len(text) - 1 - starts)
    places = np.minimum(starts[:, None] + np.arange(lengths.max()), len(text) - 2)  # (B, T)
    inputs, wanted = (torch.from_numpy(text[places + shift].astype(np.int64)) for shift in (0, 1))
    rows = Sequences(inputs, torch.from_numpy(lengths))
    return rows.fill(0), rows.with_data(wanted).fill(IGNORE).data


def _device(model: CausalModel) -> torch.device:
    return next(model.parameters()).device


class ShuffledWindows:
    """Windows of a text in random order, cut at another place each epoch; no state flows between them.

    Every token but the first is a target exactly once an epoch.
    """

    carries = False

    def __init__(self, text: np.ndarray, rows: int, window: int, seed: int):
        self.text, self.rows, self.seed = text, rows, seed
        self.window = min(window, len(text) - 1)
        self._windows: tuple[int, np.ndarray] = (
            -1,
            np.zeros((0, 2), np.int64),
        )  # of the epoch last asked for

    def batches(self, epoch: int) -> int:
        return -(-len(self.windows(epoch)) // self.rows)

    def batch(self, epoch: int, position: int) -> Batch:
        chosen = self.windows(epoch)[position * self.rows : (position + 1) * self.rows]
        inputs, wanted = windows_of(self.text, *chosen.T)
        return {"input": inputs, "target": inputs.with_data(wanted.clamp(min=0))}

    def tokens(self, batch: Batch) -> int:
        target = batch["target"]
        assert isinstance(target, Sequences)
        return int(target.lengths.sum())

    def windows(self, epoch: int) -> np.ndarray:
        """Return where each window begins and how long it is (n, 2), the first as long as the shift."""
        if self._windows[0] != epoch:
            self._windows = (epoch, self._make_windows(epoch))
        return self._windows[1]

    def _make_windows(self, epoch: int) -> np.ndarray:
        chance = numpy_stream(self.seed, "text windows", epoch)
        shift, pairs = int(chance.integers(self.window)), len(self.text) - 1
        bounds = np.concatenate([[0], np.arange(shift or self.window, pairs, self.window), [pairs]])
        return chance.permutation(np.stack([bounds[:-1], np.diff(bounds)], axis=1))


def line_sums(values: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Sum one entry a token over each line, whose EOS is the token after its `lengths`."""
    ends = np.cumsum(lengths + 1)
    return np.add.reduceat(values.astype(np.float64), np.concatenate([[0], ends[:-1]]))


def in_lines(scores: Scores, lengths: np.ndarray) -> Iterator[np.ndarray]:
    """Yield the sums over each line of the nll, and of the hits."""
    for values in scores:
        yield line_sums(values, lengths)


def hit_rate(hits: np.ndarray, counts: np.ndarray) -> Measurement:
    """Measure the share of tokens that were the likeliest."""
    return Measurement(metric_of_sums("accuracy", "higher", ratio, share=True), columns(hits, counts))
