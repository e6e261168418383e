"""Feeds: batch number `position` of an epoch, a pure function of (seed, epoch, position)."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch

from weft.core.errors import ConfigError, DataError
from weft.core.rng import numpy_stream
from weft.core.sequences import Sequences
from weft.data.arrays import RaggedArray
from weft.data.batches import Batch, collate, plan_batches, plan_in_order, plan_rows
from weft.data.sizes import refuse_absurd
from weft.data.store import Dataset
from weft.data.vocabulary import EOS


class Feed(Protocol):
    """What the training loop draws from.

    carries  recurrent state flows from each batch to the next of the epoch
    """

    @property
    def carries(self) -> bool: ...

    def batches(self, epoch: int) -> int: ...

    def batch(self, epoch: int, position: int) -> Batch: ...

    def tokens(self, batch: Batch) -> int: ...


class BucketFeed:
    """Items of like lengths together, each once an epoch, by a budget of padded elements or by rows.

    Without shuffling the items come as they stand, so predictions line up with the data.
    `target` names the column whose elements `tokens` counts; default the last.
    """

    carries = False

    def __init__(
        self,
        dataset: Dataset,
        budget: int | None = None,
        rows: int | None = None,
        seed: int = 0,
        shuffle: bool = True,
        target: str | None = None,
        noise: float = 0.0,
    ):
        if (budget is None) == (rows is None):
            raise ConfigError("A batch is sized by `budget` (elements) or by `rows`. Give one of the two.")
        self.dataset, self.budget, self.rows = dataset, budget, rows
        self.seed, self.shuffle, self.noise = seed, shuffle, noise
        self.target = target or list(dataset.columns)[-1]
        self._lengths = _all_lengths(dataset)
        _refuse_absurd_batch(dataset, self._lengths, budget, rows)
        self._plan: tuple[int, list[np.ndarray]] = (-1, [])  # the epoch last asked for, so as to plan it once

    def batches(self, epoch: int) -> int:
        return len(self.plan(epoch))

    def batch(self, epoch: int, position: int) -> Batch:
        return collate(self.dataset, self.indices(epoch, position))

    def indices(self, epoch: int, position: int) -> np.ndarray:
        """Return which items of the dataset make up a batch, row by row."""
        return self.plan(epoch)[position]

    def plan(self, epoch: int) -> list[np.ndarray]:
        """Return the items of every batch of an epoch."""
        epoch = epoch if self.shuffle else 0
        if self._plan[0] != epoch:
            self._plan = (epoch, self._make_plan(epoch))
        return self._plan[1]

    def _make_plan(self, epoch: int) -> list[np.ndarray]:
        if not self.shuffle:
            return plan_in_order(self._lengths, self.budget, self.rows)
        if self.budget is not None and self._lengths.shape[1]:
            return plan_batches(self._lengths, self.budget, self.seed, epoch, noise=self.noise)
        return plan_rows(self._lengths, self.rows or self.budget or 1, self.seed, epoch, noise=self.noise)

    def tokens(self, batch: Batch) -> int:
        target = batch[self.target]
        return int(target.lengths.sum()) if isinstance(target, Sequences) else len(target)


def _all_lengths(dataset: Dataset) -> np.ndarray:
    """Return the lengths of every ragged column (n, f)."""
    columns = [dataset.lengths(name) for name in dataset.ragged()]
    return np.stack(columns, 1) if columns else np.zeros((len(dataset), 0), np.int64)


def _refuse_absurd_batch(dataset: Dataset, lengths: np.ndarray, budget: int | None, rows: int | None) -> None:
    """Estimate the largest batch, and refuse one that memory could not hold."""
    columns = [dataset.columns[name] for name in dataset.ragged()]
    widths = np.array(
        [8 * int(np.prod(column.flat.shape[1:])) for column in columns]
    )  # bytes an element, at most
    longest = lengths.max(0, initial=0)
    if rows is not None:
        size = min(rows, len(dataset)) * int((longest * widths).sum())
    else:
        elements = min(max(budget or 0, int(longest.sum())), len(dataset) * int(longest.sum()))
        size = elements * int(widths.max(initial=0))
    refuse_absurd(size, "The largest batch", "Set a smaller batch, or a largest length.")


class StreamFeed:
    """One long text in `rows` contiguous pieces, read side by side, `window` tokens a batch.

    Truncated backpropagation through time: row r of batch p + 1 goes on where row r of batch p ended.
    Every token is a target exactly once, but the very first. Items of a ragged array are joined, an
    EOS after each, without copying them.
    """

    carries = True

    def __init__(self, tokens: RaggedArray | np.ndarray, rows: int, window: int):
        self.text = _Text(tokens)
        pairs = len(self.text) - 1
        if rows < 1 or window < 1:
            raise ConfigError(f"`rows` and `window` must be at least 1, but are {rows} and {window}.")
        if pairs < 1:
            raise DataError(f"A text must have at least 2 tokens, but has {len(self.text)}. Give more text.")
        self.rows, self.window = min(rows, pairs), window
        ends = np.arange(self.rows + 1) * (pairs // self.rows)
        self._starts = ends + np.minimum(
            np.arange(self.rows + 1), pairs % self.rows
        )  # sizes differ by 1 at most

    def batches(self, epoch: int) -> int:
        return -(-int(np.diff(self._starts).max()) // self.window)

    def batch(self, epoch: int, position: int) -> Batch:
        begin = self._starts[:-1] + position * self.window
        lengths = np.clip(self._starts[1:] - begin, 0, self.window)
        steps = np.arange(lengths.max())
        places = np.minimum(begin[:, None] + steps, len(self.text) - 2)  # (B, T)
        keep = steps < lengths[:, None]
        valid = torch.from_numpy(lengths)
        fresh = torch.full((self.rows,), position == 0)
        return {
            "input": Sequences(torch.from_numpy(np.where(keep, self.text.at(places), 0)), valid),
            "target": Sequences(torch.from_numpy(np.where(keep, self.text.at(places + 1), 0)), valid),
            "fresh": fresh,
        }

    def tokens(self, batch: Batch) -> int:
        target = batch["target"]
        assert isinstance(target, Sequences)
        return int(target.lengths.sum())


class _Text:
    """Tokens by place, whether they lie in one array or in many items, an EOS after each."""

    def __init__(self, tokens: RaggedArray | np.ndarray):
        self.flat, self._offsets = (
            (tokens, None) if isinstance(tokens, np.ndarray) else (tokens.flat, tokens.offsets)
        )
        items = 0 if self._offsets is None else len(self._offsets) - 1
        self._ends = None if self._offsets is None else self._offsets[1:] + np.arange(items)  # places of EOS
        self._size = len(self.flat) + items

    def __len__(self) -> int:
        return self._size

    def at(self, places: np.ndarray) -> np.ndarray:
        """Return the tokens at `places`, as int64."""
        if self._ends is None:
            return self.flat[places].astype(np.int64)
        if not len(self.flat):
            return np.full(places.shape, EOS, np.int64)
        items = np.searchsorted(self._ends, places)  # items that ended before each place
        end = self._ends[np.minimum(items, len(self._ends) - 1)] == places
        inside = np.minimum(places - items, len(self.flat) - 1)
        return np.where(end, EOS, self.flat[inside]).astype(np.int64)


class WindowFeed:
    """Windows of a series (T, C): `history` steps known, the next `horizon` to be told.

    Of several series (a ragged array) no window leaves its own.
    """

    carries = False

    def __init__(
        self,
        series: RaggedArray | np.ndarray,
        history: int,
        horizon: int,
        stride: int = 1,
        rows: int = 32,
        seed: int = 0,
        shuffle: bool = True,
    ):
        if min(history, horizon, stride, rows) < 1:
            raise ConfigError(
                "`history`, `horizon`, `stride` and `rows` must be at least 1, "
                f"but are {history}, {horizon}, {stride} and {rows}."
            )
        self.flat = series if isinstance(series, np.ndarray) else series.flat
        self.history, self.horizon, self.rows = history, horizon, rows
        self.seed, self.shuffle = seed, shuffle
        self.starts = _window_starts(series, history + horizon, stride)
        self._order: tuple[int, np.ndarray] = (-1, self.starts)  # of the epoch last asked for

    def batches(self, epoch: int) -> int:
        return -(-len(self.starts) // self.rows)

    def batch(self, epoch: int, position: int) -> Batch:
        starts = self.starts[self.indices(epoch, position)]
        steps = starts[:, None] + np.arange(self.history + self.horizon)
        windows = torch.from_numpy(self.flat[steps])  # (B, H + F, C)
        return {"history": windows[:, : self.history], "future": windows[:, self.history :]}

    def indices(self, epoch: int, position: int) -> np.ndarray:
        """Return which windows make up a batch, row by row."""
        epoch = epoch if self.shuffle else 0
        if self._order[0] != epoch:
            self._order = (epoch, self._make_order(epoch))
        return self._order[1][position * self.rows : (position + 1) * self.rows]

    def _make_order(self, epoch: int) -> np.ndarray:
        if not self.shuffle:
            return np.arange(len(self.starts))
        return numpy_stream(self.seed, "windows", epoch).permutation(len(self.starts))

    def tokens(self, batch: Batch) -> int:
        future = batch["future"]
        assert isinstance(future, torch.Tensor)
        return future.shape[0] * future.shape[1]


def _window_starts(series: RaggedArray | np.ndarray, size: int, stride: int) -> np.ndarray:
    """Return where in the flat array each window of `size` steps begins."""
    if isinstance(series, np.ndarray):
        bounds = np.array([0, len(series)])
    else:
        bounds = series.offsets if series.offsets is not None else np.arange(len(series.flat) + 1)
    pairs = zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
    starts = [np.arange(begin, end - size + 1, stride) for begin, end in pairs]
    found = np.concatenate(starts) if starts else np.zeros(0, np.int64)
    if not len(found):
        longest = int(np.diff(bounds).max(initial=0))
        raise DataError(
            f"A window needs history + horizon = {size} steps, but the longest series has {longest}. "
            "Set a smaller `history`."
        )
    return found
