"""Refuse a model that cannot fit before anything of it is made."""

from __future__ import annotations

from typing import Any

import torch

from weft.core.errors import ConfigError
from weft.models import ModelConfig, solve_budget
from weft.models.budget import count_on_meta

BYTES_A_PARAMETER = 16  # weight, gradient, Adam's two moments, in float32


def check_memory(task: Any, config: ModelConfig, device: torch.device) -> None:
    """Estimate what training the model takes and hold it against what the machine has."""
    parameters = count_on_meta(solve_budget(config, task.build), task.build)
    needed, present = parameters * BYTES_A_PARAMETER, memory_of(device)
    if needed > present:
        raise ConfigError(
            f"A model must fit into memory, but {parameters:,} parameters take about "
            f"{needed / 2**30:,.1f} GiB to train and {device} has {present / 2**30:,.1f} GiB. "
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
