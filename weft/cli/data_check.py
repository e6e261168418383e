"""Which sources `weft data check` reads, and as what."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from weft.cli.overrides import parse_overrides, split_words
from weft.core.config import option, parse
from weft.core.errors import ConfigError, DataError
from weft.data.locate import locate
from weft.data.readers.infer import infer_format
from weft.data.rows import KINDS, ReadOptions
from weft.data.source import RowSource
from weft.tasks import DataConfig, tasks
from weft.tasks.sources import PARTS

FORMAT_KINDS = {
    "conll": ("words", "labels"),
    "conllu": ("words", "labels"),
    "fasta": ("text", "label"),
    "label_files": ("text", "label"),
    "labelled_text": ("text", "label"),
    "npz": ("values",),
    "pianoroll": ("frames",),
    "series": ("values",),
    "text": ("text",),
}


@dataclass(frozen=True)
class CheckOptions:
    """What is asked of the data."""

    data: DataConfig = option(DataConfig, "the files, and how they are read; the keys of training")
    task: dict[str, Any] = option(dict, "what the data is for (`task=tag`) and the task's own keys")
    kinds: tuple[str, ...] = option((), "what the fields are, where the task does not say", choices=KINDS)
    unit: str = option(
        "words", "what `data.max_length` counts here", choices=("words", "characters", "steps")
    )


def read_options(words: Sequence[str]) -> CheckOptions:
    """Read the words; plain ones are the training, validation and test file in that order."""
    paths = split_words(words)[0]
    if len(paths) > len(PARTS):
        raise ConfigError(
            f"At most three files can be checked at once: {', '.join(PARTS)}. Found {len(paths)}."
        )
    files = [f"data.{part}={path}" for part, path in zip(PARTS, paths, strict=False)]
    settings = [word for word in words if word not in paths]
    return parse(CheckOptions, parse_overrides([*files, *settings]), "")


def open_sources(options: CheckOptions) -> dict[str, RowSource]:
    """Open every part that is given."""
    given = {part: paths for part in PARTS if (paths := getattr(options.data, part))}
    if not given:
        raise ConfigError("There is no file to check. Give one: weft data check FILE.")
    kinds = choose_kinds(options, next(iter(given.values())))
    reading = options.data.share(ReadOptions)
    return {part: RowSource(paths, reading, kinds) for part, paths in given.items()}


def say_guess(options: CheckOptions) -> str:
    """Return the advice that belongs to fields nobody declared."""
    if options.kinds or options.task:
        return ""
    return "\nWhat the fields are was guessed. Say it with task=TASK or kinds=text,label."


def choose_kinds(options: CheckOptions, paths: Sequence[str]) -> tuple[str, ...]:
    """Return what the fields are: as declared, as the task has them, or as the format suggests."""
    if options.kinds:
        return options.kinds
    form = guess_format(options.data, paths)
    if not options.task:
        return FORMAT_KINDS.get(form, ("text", "text"))
    kinds = task_kinds(options.task)
    return ("values", *kinds[1:]) if form == "npz" else kinds


def task_kinds(section: dict[str, Any]) -> tuple[str, ...]:
    """Return what the rows of a task hold."""
    if "name" not in section:
        raise ConfigError(f"There are keys of `task`, but no task. Name it: task={next(iter(tasks))}.")
    task = tasks[section["name"]]
    keys = {key: value for key, value in section.items() if key != "name"}
    return tuple(task.schema(parse(task.Config, keys, "task")).values())


def guess_format(data: DataConfig, paths: Sequence[str]) -> str:
    """Return the format of files whose fields are not known yet."""
    if data.format != "auto":
        return data.format
    if "#" in paths[0]:  # a part of a piano roll
        return "pianoroll"
    try:
        return infer_format(tuple(locate(path) for path in paths), ("text", "label"), data.max_line)
    except DataError as error:
        if "layout" in str(error):
            return "text"
        raise
