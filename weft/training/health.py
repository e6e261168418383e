"""Stops training before a number that is none reaches the weights, and finds where it came from."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle

from weft.core.errors import ArtefactError, InputError
from weft.core.shapes import Tensor
from weft.core.state import State
from weft.data.batches import Batch
from weft.training.clipping import Reading
from weft.training.cursor import Cursor, Group, move
from weft.training.job import Job
from weft.training.precision import Precision


class NonFinite(InputError):
    """The loss, its gradient or a weight is NaN or infinite; no such weights were saved."""


class Health:
    """Looks at every step's numbers before the update, and at the weights before they are judged or saved."""

    def __init__(self, job: Job, precision: Precision):
        self._job, self._precision = job, precision

    def check(self, reading: Reading, group: Group, cursor: Cursor) -> None:
        """Raise NonFinite with step, epoch, batch and the first bad module."""
        overflow = self._precision.tolerates_overflow
        if math.isfinite(reading.loss) and (math.isfinite(reading.norm) or overflow()):
            return
        what = "gradient" if math.isfinite(reading.loss) else "loss"
        position, where = self._search(group, cursor.state, cursor)
        raise NonFinite(
            f"The {what} must be finite, but is not at step {cursor.step + 1} "
            f"(epoch {group.epoch + 1}, batch {position + 1}); {where}. The weights were not changed. "
            "Lower `train.lr` or `train.clip`, raise `train.warmup`, or look at that batch's data."
        )

    def check_weights(self, cursor: Cursor) -> None:
        """Raise NonFinite with the module of the first weight that is no finite number."""
        named = [(name, p.detach()) for name, p in self._job.model.named_parameters() if p.numel()]
        largest = torch._foreach_norm([weight for _, weight in named], math.inf)
        finite = torch.stack([norm.float() for norm in largest]).isfinite().tolist()
        bad = next((name for (name, _), good in zip(named, finite, strict=True) if not good), None)
        if bad is not None:
            raise _too_far("The weights", cursor, f"first bad module: {_called(bad.rpartition('.')[0])}")

    def validate(
        self, measure: Callable[[], dict[str, float]], decisive: Iterable[str], cursor: Cursor
    ) -> dict[str, float]:
        """Measure; raise NonFinite if the model is why a decisive value is no finite number.

        Where no module put out a bad number, the value itself is undefined, and is returned.
        """
        try:
            values = measure()
        except ArtefactError:  # decoding met NaN
            self._blame(measure, cursor)
            raise
        if not all(math.isfinite(values.get(name, 0.0)) for name in decisive):
            self._blame(measure, cursor)
        return values

    def _blame(self, measure: Callable[[], object], cursor: Cursor) -> None:
        """Measure again under watch, and raise NonFinite if a module puts out a bad number."""
        with self._watched() as bad, suppress(ArtefactError):
            measure()
        if bad:
            raise _too_far(
                "What the model gives in validation", cursor, f"first bad module: {_called(bad[0])}"
            )

    def _search(self, group: Group, state: State, cursor: Cursor) -> tuple[int, str]:
        """Run the group's forward passes again; return the bad batch and what to say of it."""
        for offset, batch in enumerate(group.batches):
            name, total, state = self._rerun(move(batch, self._job.device), state)
            state = cursor.carry(state)
            if name is not None or not math.isfinite(total):
                return group.position + offset, f"first bad module: {_called(name)}"
        name = _last_bad_gradient(self._job.model)
        return group.position, f"the forward pass is finite, first bad gradient: {_called(name)}"

    def _rerun(self, batch: Batch, state: State) -> tuple[str | None, float, State]:
        with self._watched() as bad, torch.no_grad(), self._precision.autocast():
            loss = self._job.task.loss(self._job.model, batch, state, 0.0)
        return next(iter(bad), None), float(loss.total), loss.state

    @contextmanager
    def _watched(self) -> Iterator[list[str]]:
        """Yield the names of the modules that put out bad numbers inside the block, as they come."""
        bad: list[str] = []
        handles = [_watch(module, name, bad) for name, module in self._job.model.named_modules()]
        try:
            yield bad
        finally:
            for handle in handles:
                handle.remove()


def _too_far(what: str, cursor: Cursor, where: str) -> NonFinite:
    """Return the error that a step made has spoilt the weights."""
    return NonFinite(
        f"{what} must be finite, but is not after step {cursor.step} "
        f"(epoch {cursor.epoch_of_step}); {where}. "
        "Lower `train.lr` or `train.clip`, or raise `train.warmup`."
    )


def _watch(module: nn.Module, name: str, bad: list[str]) -> RemovableHandle:
    """Note `name` when the module puts out what is no number. Parts end before the whole they make."""

    def look(_: nn.Module, inputs: Any, output: Any) -> None:
        if any(_is_bad(tensor) for tensor in _tensors(output)):
            bad.append(name)

    return module.register_forward_hook(look)


def _is_bad(tensor: Tensor) -> bool:
    """Tell whether a NaN or +inf is in it; -inf is what masked scores are."""
    return tensor.is_floating_point() and bool((tensor.isnan() | (tensor == math.inf)).any())


def _tensors(value: Any) -> Iterator[Tensor]:
    """Yield the tensors of a module's output: a tensor, Sequences, or a nesting of them."""
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(getattr(value, "data", None), torch.Tensor):
        yield value.data
    elif isinstance(value, dict):
        yield from _tensors(tuple(value.values()))
    elif isinstance(value, tuple | list):
        for item in value:
            yield from _tensors(item)


def _last_bad_gradient(model: nn.Module) -> str | None:
    """Return the bad one nearest to the output: where backpropagation met it first."""
    named = [(n, p.grad) for n, p in model.named_parameters() if p.grad is not None]
    return next((name for name, grad in reversed(named) if not bool(grad.isfinite().all())), None)


def _called(name: str | None) -> str:
    return f"`{name}`" if name else "the model itself"
