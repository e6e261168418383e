"""Explain settings: open what data there are, and say what model and training will be like."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import torch

from weft.api.memory import memory_of
from weft.api.session import Sources, build_model, learn_fields
from weft.api.settings import Settings
from weft.data import Dataset, Feed, Field, FieldOptions, Limits, prepare_cached
from weft.explain import Explanation, Speed, Subject, made_up, measure_speed, stated_fields
from weft.explain import explain as explain_subject
from weft.models import ModelConfig, solve_budget
from weft.tasks import BatchConfig, tasks

BATCHES = 4  # of made-up data


def explain(
    settings: Settings,
    memory: Mapping[str, Any] | None = None,
    probe: bool = True,
    length: int = 32,
) -> Explanation:
    """Explain what training as the settings say means; `probe` makes ten steps of it to measure its speed.

    Without data the vocabularies are as large as stated, and every text has `length` elements.
    """
    device = settings.device()
    if settings.general.threads is not None:
        torch.set_num_threads(settings.general.threads)
    known = bool(settings.data.train) or bool(memory)
    fields, data = _open(settings, memory) if known else _assume(settings, length)
    task = tasks[settings.task](settings.task_config, fields, settings.batch)
    settings = dataclasses.replace(settings, model=_solve(task, settings.model))
    subject = Subject(
        task,
        settings.model,
        settings.train,
        data,
        settings.general.seed,
        memory_of(device),
        "" if known else f"no data: texts of {length} tokens, vocabularies as large as stated",
    )

    def measure(feed: Feed) -> Speed:
        model, _ = build_model(task, settings)
        return measure_speed(model, task, feed, settings.train, settings.general.seed)

    return explain_subject(subject, measure if probe and known else None)


def _solve(task: Any, config: ModelConfig) -> ModelConfig:
    """Solve the width and keep the wish."""
    solved = solve_budget(config, task.build)
    return dataclasses.replace(solved, common=dataclasses.replace(solved.common, budget=config.common.budget))


def _open(settings: Settings, memory: Mapping[str, Any] | None) -> tuple[dict[str, Field], Dataset]:
    sources = Sources(settings, memory)
    fields = learn_fields(settings, sources)
    rows = sources.parts.train
    assert rows is not None, "fields were learned from it"
    return fields, prepare_cached(rows, fields, settings.data.share(Limits))


def _assume(settings: Settings, length: int) -> tuple[dict[str, Field], Dataset]:
    fields = stated_fields(settings.schema(), settings.data.share(FieldOptions))
    count = BATCHES * _rows(settings.batch, length * len(fields))
    return fields, made_up(fields, [length] * count)


def _rows(batch: BatchConfig, elements: int) -> int:
    return batch.rows or max(1, (batch.tokens or 1) // elements)
