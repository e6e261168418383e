"""Small tasks with fields of a stated size, for what explains and measures models."""

from typing import Any

from weft.api.settings import Settings, parse_settings
from weft.data import Dataset, FieldOptions
from weft.explain import made_up, stated_fields
from weft.tasks import tasks


def settings_of(**values: Any) -> Settings:
    """Read settings, texts of words in a vocabulary of 40 unless said otherwise."""
    data = {"tokens": "word", "vocabulary": 40, **values.pop("data", {})}
    return parse_settings({"task": {"name": "translate"}, **values, "data": data})


def task_and_data(settings: Settings, lengths: list[int]) -> tuple[Any, Dataset]:
    """Return the task of settings with stated fields, and made-up data for it."""
    fields = stated_fields(settings.schema(), settings.data.share(FieldOptions))
    task = tasks[settings.task](settings.task_config, fields, settings.batch)
    return task, made_up(fields, lengths)
