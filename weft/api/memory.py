"""Refuse a model that cannot fit before anything of it is made."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.errors import ConfigError
from weft.explain.memory import FLOAT, optimizer_numbers
from weft.models import ModelConfig, solve_budget
from weft.models.budget import count_on_meta
from weft.training import TrainConfig


def check_memory(task: Any, config: ModelConfig, device: torch.device, train: TrainConfig | None) -> None:
    """Count what the model's numbers take, those of its training too, and hold it against what there is."""
    parameters = count_on_meta(solve_budget(config, task.build), task.build)
    each, aim = (1, "use") if train is None else (2 + optimizer_numbers(train), "train")
    needed, present = parameters * each * FLOAT, memory_of(device)
    if needed > present:
        raise ConfigError(
            f"A model must fit into memory, but {parameters:,} parameters take about "
            f"{needed / 2**30:,.1f} GiB to {aim} and {device} has {present / 2**30:,.1f} GiB. "
            f"Lower `model.width` (now {config.common.width}) or `data.vocabulary`, or set `model.budget`."
        )


def memory_of(device: torch.device) -> int:
    """Return the bytes of memory of a device."""
    if device.type == "cuda":
        return torch.cuda.get_device_properties(device).total_memory
    try:
        with open("/proc/meminfo", encoding="ascii") as lines:
            return int(next(line for line in lines if line.startswith("MemTotal")).split()[1]) * 1024
    except (OSError, StopIteration):
        import os

        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
