"""What is to be trained: the arguments of a training, in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from weft.data.feeds import Feed
from weft.runs import RunFolder
from weft.training.config import TrainConfig
from weft.training.protocols import Task


@dataclass(frozen=True)
class Job:
    """A model, its task, what it learns from, what it is measured on, how, and where all is kept."""

    model: nn.Module
    task: Task
    feed: Feed
    valid: Any
    config: TrainConfig
    folder: RunFolder
    seed: int

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device
