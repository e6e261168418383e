"""Where training stands: step, epoch, position, and the state carried from batch to batch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

from weft.core.errors import DataError, InputError
from weft.core.shapes import Tensor
from weft.core.state import State, leaves, map_state, rebuild
from weft.data.batches import Batch
from weft.data.feeds import Feed
from weft.training.protocols import Loss


@dataclass(frozen=True)
class Group:
    """The batches of one step, and where they stand."""

    epoch: int
    position: int
    batches: list[Batch]


class Cursor:
    """Walks a feed. It moves when a step is made, never within one: a kill in between costs nothing."""

    def __init__(self, feed: Feed, accumulate: int):
        if not feed.batches(0):
            raise DataError(
                "Training needs at least 1 batch, but the training data make 0. Look at `data.train`."
            )
        self._feed = feed
        self._accumulate = accumulate
        self.step = 0
        self.epoch = 0
        self.position = 0
        self.tokens = 0
        self.state: State = None

    def group(self) -> Group:
        """Return the next `accumulate` batches; a group ends with its epoch."""
        end = min(self.position + self._accumulate, self._feed.batches(self.epoch))
        batches = [self._feed.batch(self.epoch, position) for position in range(self.position, end)]
        return Group(self.epoch, self.position, batches)

    def carry(self, state: State) -> State:
        """Return the state the next batch starts from, cut from the graph that made it.

        It is copied (cheap beside a forward pass) so that it lies in memory as a loaded one does:
        the last bit of a matrix product depends on alignment and strides.
        """
        return map_state(_copy, state) if self._feed.carries else None

    def finish(self, group: Group, state: State) -> None:
        """Move past a group whose step is made."""
        self.step += 1
        self.tokens += sum(self._feed.tokens(batch) for batch in group.batches)
        self.position += len(group.batches)
        self.state = state
        if self.at_epoch_end():
            self.epoch, self.position, self.state = self.epoch + 1, 0, None

    def at_epoch_end(self) -> bool:
        return self.position >= self._feed.batches(self.epoch)

    @property
    def epoch_of_step(self) -> int:
        """The epoch the last step belonged to, counted from 1."""
        return self.epoch + (self.position > 0)

    def save(self) -> dict[str, Any]:
        counts = {"step": self.step, "epoch": self.epoch, "position": self.position, "tokens": self.tokens}
        batches = self._feed.batches(self.epoch)
        return {**counts, "batches": batches, "carried": list(leaves(self.state))}

    def load(self, saved: dict[str, Any], probe: Callable[[Batch], State]) -> None:
        """Take up what `save` returned. A file knows no nesting of states: `probe` shows it on a batch."""
        self.step, self.epoch = saved["step"], saved["epoch"]
        self.position, self.tokens = saved["position"], saved["tokens"]
        batches = self._feed.batches(self.epoch)
        if batches != saved["batches"]:
            raise InputError(
                f"A training goes on with the data it began with, but epoch {self.epoch + 1} had "
                f"{saved['batches']} batches and now has {batches}. Put the data back, or train anew."
            )
        if saved["carried"]:
            like = probe(self._feed.batch(self.epoch, self.position - 1))
            self.state = rebuild(like, iter(saved["carried"]))


def _copy(leaf: Tensor) -> Tensor:
    return leaf.detach().clone(memory_format=torch.contiguous_format)


class Tally:
    """Sums the losses of a group on their device, so that nothing waits for it."""

    def __init__(self, device: torch.device):
        self.total = torch.zeros((), device=device)
        self.count = torch.zeros((), device=device)

    def add(self, loss: Loss) -> None:
        """Add one batch's loss and count."""
        self.total = self.total + loss.total.detach()
        self.count = self.count + loss.count


def move(batch: Batch, device: torch.device) -> Batch:
    """Return the batch with every tensor of it on `device`."""
    return {name: value.to(device) for name, value in batch.items()}
