"""Batches: which items go together, and how they become padded tensors."""

from __future__ import annotations

import numpy as np
import torch

from weft.core.errors import ConfigError
from weft.core.rng import numpy_stream
from weft.core.sequences import Sequences
from weft.data.store import Dataset, RaggedArray

Batch = dict[str, Sequences | torch.Tensor]

POOL = 1 << 17  # items sorted together; a larger set is cut at random into pools of this size
FILL = 0.85  # a batch may end early, from this share of the budget on, where that saves padding
WIDTHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)


def collate(dataset: Dataset, indices: np.ndarray) -> Batch:
    """Return the items `indices`: ragged columns as Sequences filled with 0, others as tensors (B, ...).

    Ids come out as int64, whatever they are stored as; other types stay.
    """
    rows = dataset.places(indices)
    return {name: _gather(column, rows) for name, column in dataset.columns.items()}


def _gather(column: RaggedArray, rows: np.ndarray) -> Sequences | torch.Tensor:
    if column.offsets is None:
        return _tensor(column.flat[rows])
    starts = np.asarray(column.offsets[rows])
    lengths = np.asarray(column.offsets[rows + 1]) - starts
    return Sequences(_tensor(_pad(column.flat, starts, lengths)), torch.from_numpy(lengths))


def _pad(flat: np.ndarray, starts: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """Copy flat[starts[b] : starts[b] + lengths[b]] into row b (B, T, ...) of zeros, in one indexing."""
    steps = np.arange(lengths.max(initial=0))
    padded = np.zeros((len(lengths), len(steps), *flat.shape[1:]), flat.dtype)
    mask = steps < lengths[:, None]  # (B, T)
    padded[mask] = flat[(starts[:, None] + steps)[mask]]
    return padded


def _tensor(array: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(array.astype(np.int64) if array.dtype == np.int32 else array)


def plan_batches(
    lengths: np.ndarray, budget: int, seed: int, epoch: int, *, noise: float = 0.0
) -> list[np.ndarray]:
    """Group items (n, f fields) of like lengths so that no batch pads to more than `budget` elements.

    The budget counts every field, padding included: rows * (sum over fields of the longest length).
    A longer item forms a batch of its own. Chance, a pure function of (seed, epoch), decides which
    of equally long items meet, which field leads, where strips and batches begin, and the order of
    batches; `noise` adds more, as a share of the lengths, for more padding.
    """
    if budget < 1:
        raise ConfigError(f"A batch needs a budget of at least 1 element, but has {budget}. Try 4096.")
    chance = numpy_stream(seed, "batches", epoch)
    batches = [
        b for order in _pools(lengths, budget, noise, chance) for b in _cut(lengths, order, budget, chance)
    ]
    return [batches[i] for i in chance.permutation(len(batches))]


def plan_rows(
    lengths: np.ndarray, rows: int, seed: int, epoch: int, *, noise: float = 0.0
) -> list[np.ndarray]:
    """Group items of like lengths (n, f fields; f may be 0), `rows` to a batch, perhaps fewer in one."""
    if rows < 1:
        raise ConfigError(f"A batch needs at least 1 row, but has {rows}. Try 32.")
    chance = numpy_stream(seed, "batches", epoch)
    order = np.concatenate(list(_pools(lengths, None, noise, chance)))
    batches = [order[start : start + rows] for start in range(0, len(order), rows)]
    return [batches[i] for i in chance.permutation(len(batches))]


def plan_in_order(lengths: np.ndarray, budget: int | None, rows: int | None) -> list[np.ndarray]:
    """Group items as they stand, by budget or by rows."""
    order = np.arange(len(lengths))
    if rows is not None or not lengths.shape[1]:
        step = rows or budget or 1
        return [order[start : start + step] for start in range(0, len(order), step)]
    assert budget is not None
    return _cut(lengths, order, budget, None)


def padding_waste(lengths: np.ndarray, batches: list[np.ndarray]) -> float:
    """Return the share of elements that are padding, all fields (n, f) together."""
    padded = sum(len(batch) * int(lengths[batch].max(0).sum()) for batch in batches)
    valid = sum(int(lengths[batch].sum()) for batch in batches)
    return 1 - valid / padded if padded else 0.0


def _pools(lengths: np.ndarray, budget: int | None, noise: float, chance: np.random.Generator):
    """Yield the items of each random pool in an order in which neighbours are alike."""
    pools = np.array_split(chance.permutation(len(lengths)), max(-(-len(lengths) // POOL), 1))
    width = _best_width(lengths[pools[0]], budget, chance)
    for pool in pools:
        jitter = 1 + noise * chance.uniform(-1, 1, lengths[pool].shape) if noise else 1
        yield pool[_snake(np.rint(lengths[pool] * jitter).astype(np.int64), width, chance)]


def _snake(lengths: np.ndarray, width: int, chance: np.random.Generator) -> np.ndarray:
    """Order items field by field, in strips `width` long of all fields but the last, forth and back.

    Going back where a strip ends keeps neighbours alike there too. Items come in random order and
    the sort is stable, so ties stay random.
    """
    fields = chance.permutation(lengths.shape[1])
    keys, turns = [np.zeros(len(lengths), np.int64)], np.zeros(len(lengths), np.int64)
    for field in fields:
        last = field == fields[-1]
        key = lengths[:, field] if last else (lengths[:, field] + chance.integers(width)) // width
        keys.append(np.where(turns % 2, -key, key))
        turns = turns + key
    return np.lexsort(keys[::-1])


def _best_width(lengths: np.ndarray, budget: int | None, chance: np.random.Generator) -> int:
    """Return the width of strips that pads least; one field needs no strips."""
    if lengths.shape[1] < 2 or budget is None:
        return 1
    orders = [(width, _snake(lengths, width, chance)) for width in WIDTHS if width <= max(lengths.max(), 1)]
    wastes = [(padding_waste(lengths, _cut(lengths, order, budget, None)), width) for width, order in orders]
    return min(wastes, default=(0.0, 1))[1]


def _cut(
    lengths: np.ndarray, order: np.ndarray, budget: int, chance: np.random.Generator | None
) -> list[np.ndarray]:
    """Cut `order` into batches within the budget; with chance, the first is cut short at random."""
    sizes, batches, start = lengths[order], [], 0
    room = budget if chance is None else int(budget * chance.uniform(0.3, 1))
    while start < len(order):
        count = _count(sizes, start, room, 1.0 if chance is None else FILL)
        batches.append(order[start : start + count])
        start, room = start + count, budget
    return batches


def _count(sizes: np.ndarray, start: int, budget: int, fill: float) -> int:
    """Return how many items from `start` on make the best batch: at least 1, at most the budget's worth."""
    window = 2 * budget // max(int(sizes[start].sum()), 1) + 2  # more than fit, unless lengths fall steeply
    while True:
        rows = sizes[start : start + window]
        padded = np.maximum.accumulate(rows, 0).sum(1) * np.arange(1, len(rows) + 1)
        most = int(np.searchsorted(padded, budget, "right"))
        if most < len(rows) or start + window >= len(sizes):
            break
        window *= 2
    least = int(np.searchsorted(padded, budget * fill))
    if most <= least or start + most == len(sizes):
        return max(most, 1)
    full = np.cumsum(rows.sum(1))[least:most] / np.maximum(padded[least:most], 1)
    return most - int(np.argmax(full[::-1]))  # the fullest batch; of equals, the largest
