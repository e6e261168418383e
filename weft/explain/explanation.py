"""Explain a configuration: what its model is made of, and what training it will take."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.data import Batch, Dataset, Feed
from weft.explain.flops import Flops, count_flops
from weft.explain.memory import (
    FLOAT,
    Taken,
    measure_batch,
    optimizer_numbers,
    small_width,
    state_bytes,
)
from weft.explain.observe import Work, Works, observe
from weft.explain.parts import count_parts, in_order, part_of
from weft.explain.plan import Plan, plan_training
from weft.explain.probe import Speed
from weft.models import ModelConfig, parse_count
from weft.nn.families import families
from weft.training import TrainConfig

SAMPLED = 4  # batches looked at
OBSERVED_WIDTH = 8  # of the copy that shows which module meets how many elements


@dataclass(frozen=True)
class Subject:
    """What is to be explained: a task that knows its fields, a model's config with its width solved."""

    task: Any
    config: ModelConfig
    train: TrainConfig
    data: Dataset
    seed: int = 1
    memory: int | None = None  # bytes the device has
    assumed: str = ""  # what stands in for data that is not there


@dataclass(frozen=True)
class Part:
    """One part of the model; its operations forward are for each target element."""

    name: str
    parameters: int
    flops: float


@dataclass(frozen=True)
class Budget:
    """The parameters wanted, and what the solved width gives."""

    wanted: int
    deviation: float


@dataclass(frozen=True)
class Memory:
    """Bytes, by what they are for; a batch's share is an estimate."""

    training: dict[str, int]
    use: dict[str, int]
    present: int | None

    @property
    def fits(self) -> bool:
        return self.present is None or sum(self.training.values()) <= self.present


@dataclass(frozen=True)
class Reach:
    """How far a side of bounded reach sees, beside the longest it is given."""

    side: str
    sees: int
    longest: int


@dataclass(frozen=True)
class Explanation:
    """All that can be said before training."""

    families: str
    width: int
    parts: tuple[Part, ...]
    budget: Budget | None
    memory: Memory
    forward: float  # operations for each target element
    both: float
    plan: Plan
    reaches: tuple[Reach, ...]
    speed: Speed | None
    assumed: str
    unit: str = "token"  # what the loss counts

    @property
    def parameters(self) -> int:
        return sum(part.parameters for part in self.parts)

    @property
    def flops(self) -> float | None:
        """Operations of the whole training; None where its length is not known."""
        return None if self.plan.tokens is None else self.plan.tokens * self.both

    @property
    def seconds(self) -> float | None:
        """Time of the whole training, validations left out."""
        if self.speed is None or self.plan.tokens is None:
            return None
        return self.plan.tokens / self.speed.tokens_per_second

    def warnings(self) -> list[str]:
        """Return what should be looked at before training."""
        found = [
            f"The {r.side} sees {r.sees:,} steps, but the longest item has {r.longest:,}. "
            "Raise `model.layers` or `model.kernel`."
            for r in self.reaches
            if r.sees < r.longest
        ]
        if not self.memory.fits:
            found.append(
                "Training takes more memory than the device has. Lower `model.width` or `batch.tokens`."
            )
        return found

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data."""
        more = {
            "parameters": self.parameters,
            "flops": self.flops,
            "seconds": self.seconds,
            "warnings": self.warnings(),
        }
        return {**dataclasses.asdict(self), **more}


def explain(subject: Subject, probe: Callable[[Feed], Speed] | None = None) -> Explanation:
    """Explain a model and its training without making it; `probe` measures the speed of the real one."""
    task, config, train = subject.task, subject.config, subject.train
    with torch.random.fork_rng(devices=[]):
        with torch.device("meta"):
            model = task.build(config)
        feed = task.feed(subject.data, subject.seed)
        batches = _sample(feed)
        seen = [_observe(task, config, batch) for batch in batches]
        taken = _measure(task, config, train, max(batches, key=_elements))
    tokens = [feed.tokens(batch) for batch in batches]
    by_part = _by_part(model, seen, sum(tokens))
    plan = plan_training(train, feed, float(np.mean(tokens)), bool(subject.assumed))
    memory = _memory(model, train, taken, max(batches, key=_elements), seen, subject.memory)
    speed = probe(feed) if probe is not None and memory.fits else None
    total = sum(by_part.values(), Flops())
    return Explanation(
        families=config.families,
        width=config.common.width,
        parts=_parts(model, by_part, sum(tokens)),
        budget=_budget(model, config),
        memory=memory,
        forward=total.forward / sum(tokens),
        both=total.both / sum(tokens),
        plan=plan if speed is None else plan.within(train.minutes, speed.tokens_per_second),
        reaches=_reaches(config, seen, feed),
        speed=speed,
        assumed=subject.assumed,
        unit=getattr(task, "unit", "token"),
    )


def _sample(feed: Feed) -> list[Batch]:
    """Return a few batches from all over the first epoch."""
    count = feed.batches(0)
    places = np.unique(np.linspace(0, count - 1, min(SAMPLED, count)).astype(int))
    return [feed.batch(0, int(place)) for place in places]


def _elements(batch: Batch) -> int:
    return sum(
        (value.data if isinstance(value, Sequences) else value).shape[:2].numel() for value in batch.values()
    )


def _observe(task: Any, config: ModelConfig, batch: Batch) -> dict[str, Work]:
    """Return each module's work on a batch, as a copy of small width meets it."""
    small = task.build(config.with_width(small_width(config, OBSERVED_WIDTH))).train()
    return observe(small, lambda: task.loss(small, batch, None, 0.0))


def _measure(task: Any, config: ModelConfig, train: TrainConfig, batch: Batch) -> Taken:
    def run(model: nn.Module) -> Tensor:
        with torch.autocast("cpu", torch.bfloat16, enabled=train.precision != "fp32"):
            return task.loss(model, batch, None, train.label_smoothing).total

    return measure_batch(task.build, config, run)


def _by_part(model: nn.Module, seen: Sequence[Works], tokens: int) -> dict[str, Flops]:
    """Sum the operations of every part over the batches."""
    sums: dict[str, Flops] = {}
    for works in seen:
        for name, flops in count_flops(model, works).items():
            if flops.both:
                part = part_of(name)
                sums[part] = sums.get(part, Flops()) + flops
    return sums


def _parts(model: nn.Module, flops: dict[str, Flops], tokens: int) -> tuple[Part, ...]:
    counts = count_parts(model)
    return tuple(
        Part(name, counts.get(name, 0), flops.get(name, Flops()).forward / tokens)
        for name in in_order([*counts, *flops])
    )


def _budget(model: nn.Module, config: ModelConfig) -> Budget | None:
    if config.common.budget is None:
        return None
    wanted = parse_count(config.common.budget)
    return Budget(wanted, sum(count_parts(model).values()) / wanted - 1)


def _memory(
    model: nn.Module,
    train: TrainConfig,
    taken: Taken,
    batch: Batch,
    seen: Sequence[Works],
    present: int | None,
) -> Memory:
    weights = sum(p.numel() for p in model.parameters()) * FLOAT
    training = {
        "weights": weights,
        "gradients": weights,
        "optimizer": weights * optimizer_numbers(train),
        "activations of a batch": taken.training,
    }
    rows = next(iter(batch.values())).data.shape[0]
    longest = max((work.steps for works in seen for work in works.values()), default=0)
    use = {
        "weights": weights,
        "state": state_bytes(model, rows, longest),
        "activations of a batch": taken.use,
    }
    return Memory(training, use, present)


def _reaches(config: ModelConfig, seen: Sequence[Works], feed: Feed) -> tuple[Reach, ...]:
    """Return the reach of every side that has one."""
    found = []
    for name, side in config.sides.items():
        sees = families[side.family].sees
        if sees is not None:
            found.append(Reach(name, sees(side.options), _longest(name, seen, feed)))
    return tuple(found)


def _longest(side: str, seen: Sequence[Works], feed: Feed) -> int:
    """Return the longest sequence a side is given: of all data where the feed hands out items."""
    ending = {"encoder": "encoder", "decoder": "backbone"}[side]
    met = max((w.steps for works in seen for name, w in works.items() if name.endswith(ending)), default=0)
    data = getattr(feed, "dataset", None)
    if data is None or not data.ragged():
        return met
    column = data.ragged()[0 if side == "encoder" else -1]
    return max(met, int(data.lengths(column).max(initial=0)))
