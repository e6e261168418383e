"""Running a model over data, without training it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

import numpy as np
import torch
from torch import nn

from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.data import BucketFeed, Dataset, Field
from weft.tasks.protocol import BatchConfig

R = TypeVar("R")

CHUNK = 1024  # inputs of a prediction read ahead and sorted by length


@contextmanager
def evaluating(model: nn.Module) -> Iterator[torch.device]:
    """Switch dropout and gradients off inside the block; yield the model's device."""
    training = model.training
    model.eval()
    try:
        with torch.no_grad():
            yield next(model.parameters()).device
    finally:
        model.train(training)


def to_device(batch: Mapping[str, Any], device: torch.device) -> dict[str, Any]:
    """Move a batch."""
    return {name: value.to(device) for name, value in batch.items()}


def bucket_feed(data: Dataset, batch: BatchConfig, seed: int, target: str) -> BucketFeed:
    """Return shuffled batches of like lengths for training."""
    budget = batch.tokens if batch.rows is None else None
    return BucketFeed(data, budget, batch.rows, seed, target=target)


def each_batch(
    model: nn.Module, data: Dataset, batch: BatchConfig, target: str
) -> Iterator[tuple[np.ndarray, dict[str, Any]]]:
    """Yield every batch of a data set on the model's device, with its items' places."""
    device = next(model.parameters()).device
    feed = bucket_feed(data, batch, 0, target)
    for position in range(feed.batches(0)):
        yield feed.indices(0, position), to_device(feed.batch(0, position), device)


def in_order(size: int, parts: Iterable[tuple[np.ndarray, Sequence[Any]]]) -> list[Any]:
    """Put results that came batch by batch back in the order of the items."""
    results: list[Any] = [None] * size
    for places, values in parts:
        for place, value in zip(places.tolist(), values, strict=True):
            results[place] = value
    return results


def answer(
    raws: Iterable[Any],
    field: Field,
    batch: BatchConfig,
    device: torch.device,
    run: Callable[[Sequences], list[R]],
) -> Iterator[R | None]:
    """Answer raw inputs in order, batched by length; None for an empty input."""
    return answer_numbered(raws, field, batch, device, lambda x, numbers: run(x))


def answer_numbered(
    raws: Iterable[Any],
    field: Field,
    batch: BatchConfig,
    device: torch.device,
    run: Callable[[Sequences, list[int]], list[R]],
    first: int = 0,
    empty: bool = False,
) -> Iterator[R | None]:
    """Do the same for a `run` that is also told each row's number among all inputs, from `first`.

    `empty` has empty inputs answered too.
    """
    source, before = iter(raws), first
    while chunk := list(islice(source, CHUNK)):
        arrays = [torch.from_numpy(np.asarray(field.encode(_read(field, raw)))) for raw in chunk]
        answers: list[R | None] = [None] * len(arrays)
        for places in _by_length(arrays, batch, empty):
            x = Sequences.pad([arrays[i] for i in places])
            x = x.with_data(x.data.long() if x.data.dtype == torch.int32 else x.data).to(device)
            for place, result in zip(places, run(x, [before + i for i in places]), strict=True):
                answers[place] = result
        yield from answers
        before += len(chunk)


def _read(field: Field, raw: Any) -> Any:
    """Return a raw input as the field wants it: a line of words may come whole."""
    return raw.split() if field.kind == "words" and isinstance(raw, str) else raw


def _by_length(arrays: Sequence[Tensor], batch: BatchConfig, empty: bool) -> Iterator[list[int]]:
    """Yield places of arrays (`empty`: of empty ones too), longest first, within the batch's budget."""
    order = sorted((i for i, a in enumerate(arrays) if empty or len(a)), key=lambda i: -len(arrays[i]))
    while order:
        rows = batch.rows or max(1, (batch.tokens or 1) // max(1, len(arrays[order[0]])))
        yield order[:rows]
        order = order[rows:]


def encode_one(field: Field, raw: Any, device: torch.device) -> Sequences:
    """Encode one raw input as a batch of one."""
    x = torch.from_numpy(np.asarray(field.encode(_read(field, raw))))
    return Sequences.pad([x.long() if x.dtype == torch.int32 else x]).to(device)


def pieces(tokens: Iterable[int], text: Callable[[list[int]], str]) -> Iterator[str]:
    """Yield what tokens add to a text as they come; a character made of several comes when it is whole."""
    so_far, shown = [], ""
    for token in tokens:
        so_far.append(token)
        now = text(so_far)
        if now.startswith(shown) and not now.endswith("\ufffd"):
            yield now[len(shown) :]
            shown = now
    yield text(so_far).removeprefix(shown)


def raw_column(rows: Iterable[Any], numbers: np.ndarray | None, column: int) -> list[Any] | None:
    """Return the raw values behind a data set: those of the rows it kept, by their place in `rows`."""
    if numbers is None:
        return None
    wanted = set(numbers.tolist())
    found = {place: row.values[column] for place, row in enumerate(rows, start=1) if place in wanted}
    return [found[number] for number in numbers.tolist()]


def written_inputs(rows: Iterable[Any], numbers: np.ndarray | None, kind: str) -> list[str] | None:
    """Return the inputs behind a data set as they were written; None where they are no text."""
    raws = raw_column(rows, numbers, 0) if kind in ("text", "words") else None
    return raws if raws is None or kind == "text" else [" ".join(words) for words in raws]


def averages(parts: Iterable[Mapping[str, float]], weights: Sequence[float]) -> dict[str, float]:
    """Return the weighted mean of each named number."""
    rows = list(parts)
    total = sum(weights) or 1.0
    return {
        name: sum(row[name] * w for row, w in zip(rows, weights, strict=True)) / total
        for name in (rows[0] if rows else {})
    }
