"""From settings to the parts of a run: data, fields, task, model."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import torch
from torch import nn

from weft.api.memory import check_memory
from weft.api.settings import Settings
from weft.core.errors import DataError
from weft.core.rng import derive
from weft.data import Dataset, Field, FieldOptions, Limits, Rows, fit_fields, prepare_cached
from weft.models import ModelConfig
from weft.tasks import Parts, build, open_parts, tasks
from weft.tasks.sources import PARTS


class Sources:
    """The rows of each part, opened when first asked for: a run is used without its data."""

    def __init__(self, settings: Settings, memory: Mapping[str, Any] | None = None):
        self.settings, self.memory = settings, dict(memory or {})

    @cached_property
    def parts(self) -> Parts:
        """Every part."""
        settings = self.settings
        return open_parts(settings.data, settings.schema(), self.memory, settings.by_position())

    def part(self, name: str) -> Rows:
        """Open one part; with a file of its own no other file is looked at."""
        data = self.settings.data
        if name != "train" and getattr(data, name):
            others = {other: () for other in PARTS if other != name}
            alone = open_parts(dataclasses.replace(data, **others), self.settings.schema())
            return getattr(alone, name)
        rows = getattr(self.parts, name)
        if rows is None:
            raise DataError(f"There is no {name} data. Give a file: data.{name}=FILE.")
        return rows


@dataclass(frozen=True)
class Session:
    """A task that has learned its fields, its rows, and its model."""

    settings: Settings
    sources: Sources
    fields: dict[str, Field]
    task: Any
    model: nn.Module

    @property
    def parts(self) -> Parts:
        return self.sources.parts

    def dataset(self, rows: Rows) -> Dataset:
        """Encode rows with this session's fields (or open what was encoded before)."""
        return prepare_cached(rows, self.fields, self.settings.data.share(Limits))


def open_session(
    settings: Settings,
    memory: Mapping[str, Any] | None = None,
    fields: dict[str, Field] | None = None,
    trains: bool = True,
) -> Session:
    """Learn the fields (unless given) and build the model, ready to train or to load weights."""
    settings.device()  # one that is not there is refused before anything is read
    if settings.general.threads is not None:
        torch.set_num_threads(settings.general.threads)
    sources = Sources(settings, memory)
    if fields is None:
        fields = learn_fields(settings, sources)
    task = tasks[settings.task](settings.task_config, fields, settings.batch)
    model, config = build_model(task, settings, trains)
    settings = dataclasses.replace(settings, model=config)
    return Session(settings, sources, fields, task, model)


def learn_fields(settings: Settings, sources: Sources) -> dict[str, Field]:
    """Learn vocabularies, labels and scales from the training rows."""
    if sources.parts.train is None:
        raise DataError("Training needs data. Give a file: data.train=FILE.")
    options = settings.data.share(FieldOptions)
    return fit_fields(sources.parts.train, settings.schema(), options, bool(settings.data.missing))


def build_model(task: Any, settings: Settings, trains: bool = True) -> tuple[nn.Module, ModelConfig]:
    """Build the model on its device, its weights drawn from the seed; refuse one that cannot fit."""
    device = settings.device()
    check_memory(task, settings.model, device, settings.train if trains else None)
    torch.manual_seed(derive(settings.general.seed, "weights"))
    model, config = build(task, settings.model)
    return model.to(device), config
