"""The one builder of models."""

from __future__ import annotations

import dataclasses

from torch import nn

from weft.models import ModelConfig, solve_budget
from weft.tasks.protocol import Task


def build(task: Task, config: ModelConfig) -> tuple[nn.Module, ModelConfig]:
    """Build the task's model, its width solved if there is a budget; return it with its config."""
    solved = solve_budget(config, task.build)
    model = task.build(solved)
    kept = dataclasses.replace(solved.common, budget=config.common.budget)
    return model, dataclasses.replace(solved, common=kept)
