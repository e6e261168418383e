"""All of a run's configuration: which sections there are, and reading them together."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from weft.core.config import merge, option, parse, plain
from weft.core.errors import ConfigError, nearest
from weft.data import PositionRows, ReadOptions
from weft.data.source import layout
from weft.decoding import DecodingConfig
from weft.models import ModelConfig, parse_model
from weft.tasks import BatchConfig, DataConfig, tasks
from weft.tasks.sources import View
from weft.training import TrainConfig

SECTIONS = ("task", "data", "batch", "model", "train", "decoding")


@dataclass(frozen=True)
class General:
    """Keys outside every section."""

    run: str | None = option(None, "folder of the run; default a fresh one in runs/")
    seed: int = option(1, "all chance follows from it", low=0)
    device: str = option("auto", "cpu, cuda, cuda:1 …; auto takes a GPU if there is one")
    threads: int | None = option(None, "threads of the CPU; default torch's choice", low=1, high=1024)


@dataclass(frozen=True)
class Settings:
    """A run's configuration, read and complete."""

    general: General
    task: str
    task_config: Any
    data: DataConfig
    batch: BatchConfig
    model: ModelConfig
    train: TrainConfig
    decoding: DecodingConfig

    def plain(self) -> dict[str, Any]:
        """Return everything as plain data, every default written out: what config.yaml holds."""
        general = plain(self.general)
        general.pop("run")
        return {
            **general,
            "task": {"name": self.task, **plain(self.task_config)},
            "data": plain(self.data),
            "batch": plain(self.batch),
            "model": self.model.plain(),
            "train": plain(self.train),
            "decoding": plain(self.decoding),
        }

    def schema(self) -> dict[str, str]:
        """Return the fields a row of this task holds, and the raw kind of each."""
        return tasks[self.task].schema(self.task_config)

    def by_position(self) -> View:
        """Return how this task cuts a source into parts by position."""
        kind = tasks[self.task]
        return kind.view(self.task_config) if hasattr(kind, "view") else PositionRows

    def device(self) -> torch.device:
        """Return the device to compute on, or refuse one that is not there."""
        name = self.general.device
        if name == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        try:
            torch.empty(0, device=name)
        except (RuntimeError, AssertionError):
            raise ConfigError(f"`device` {name} is not on this machine. Try device=cpu.") from None
        return torch.device(name)


def parse_settings(values: Mapping[str, Any]) -> Settings:
    """Read plain values into settings; what is not said comes from the task's and the sections' defaults."""
    values = normalise(values)
    name, kind, task_values = _task(values)
    free = "tokens" not in (_mapping(values.get("data"), "data") or {})
    values = merge({key: dict(section) for key, section in kind.defaults.items()}, values)
    general_keys = {f.name for f in dataclasses.fields(General)}
    for key in values:
        if key not in SECTIONS and key not in general_keys:
            raise ConfigError(f"There is no key `{key}`.{nearest(key, [*SECTIONS, *general_keys])}")
    config, data = parse(kind.Config, task_values, "task"), parse(DataConfig, values.get("data"), "data")
    return Settings(
        general=parse(General, {k: v for k, v in values.items() if k in general_keys}, ""),
        task=name,
        task_config=config,
        data=_by_layout(data, kind.schema(config)) if free else data,
        batch=parse(BatchConfig, values.get("batch"), "batch"),
        model=parse_model(_mapping(values.get("model"), "model"), kind.sides),
        train=parse(TrainConfig, values.get("train"), "train"),
        decoding=parse(DecodingConfig, values.get("decoding"), "decoding"),
    )


def _by_layout(data: DataConfig, schema: Mapping[str, str]) -> DataConfig:
    """Return the data section with defaults of its layout: residues of FASTA stand without spaces."""
    form = layout(data.train, data.share(ReadOptions), tuple(schema.values()))
    return dataclasses.replace(data, tokens="char") if form == "fasta" else data


def normalise(values: Mapping[str, Any]) -> dict[str, Any]:
    """Bring short forms to the long one: `task: translate`, `model: lstm+additive`."""
    values = dict(values)
    if isinstance(values.get("task"), str):
        values["task"] = {"name": values["task"]}
    if isinstance(values.get("model"), str):
        values["model"] = {"family": values["model"]}
    return values


def _task(values: Mapping[str, Any]) -> tuple[str, Any, dict[str, Any]]:
    section = dict(_mapping(values.get("task"), "task") or {})
    name = section.pop("name", None)
    if name is None:
        raise ConfigError(f"`task` must be named. Known: {', '.join(sorted(tasks))}. Try task=translate.")
    return str(name), tasks[str(name)], section


def _mapping(value: Any, where: str) -> Mapping[str, Any] | None:
    if value is not None and not isinstance(value, Mapping):
        raise ConfigError(f"`{where}` must be a mapping of keys to values, but is {value!r}.")
    return value
