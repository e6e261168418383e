"""Start a training, or go on with one."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from weft.api.describe import advice, describe_field, describe_model, left_out
from weft.api.run import Run
from weft.api.session import Session, open_session
from weft.api.settings import Settings, normalise, parse_settings
from weft.core.config import merge
from weft.core.errors import ConfigError, InputError
from weft.data import Dataset, Rows, load_fields, save_fields
from weft.runs import RunFolder
from weft.training import Outcome
from weft.training import check as check_training
from weft.training import train as run_training

Say = Callable[[str], object]


def train(
    rows: Any = None,
    /,
    *,
    task: str | Mapping[str, Any] | None = None,
    model: str | Mapping[str, Any] | None = None,
    budget: str | None = None,
    valid: Any = None,
    test: Any = None,
    run: str | Path | None = None,
    quiet: bool = True,
    **settings: Any,
) -> Run:
    """Train a model on a file (or lists, arrays, a DataFrame) and return the run.

    `task` and `model` are names, or sections as in a recipe; further settings are its other sections
    and keys: data={"tokens": "char"}, train={"steps": 500}, seed=3.
    """
    values = dict(settings)
    memory: dict[str, Any] = {}
    _place(values, memory, {"train": rows, "valid": valid, "test": test})
    said = {"task": task, "model": model, "run": None if run is None else str(run)}
    values = normalise({**values, **{key: value for key, value in said.items() if value is not None}})
    if budget is not None:
        values = merge(values, {"model": {"budget": budget}})
    return start(parse_settings(values), memory, quiet=quiet)[0]


def _place(values: dict[str, Any], memory: dict[str, Any], given: Mapping[str, Any]) -> None:
    """Put file names into the data section and objects into memory."""
    for name, data in given.items():
        if isinstance(data, str | Path):
            values["data"] = merge(values.get("data", {}), {name: [str(data)]})
        elif data is not None:
            memory[name] = data


def start(
    settings: Settings,
    memory: Mapping[str, Any] | None = None,
    quiet: bool = False,
    say: Say = lambda line: None,
) -> tuple[Run, Outcome]:
    """Train as the settings say, in a new run folder; whatever is wrong with the data is found before."""
    with _new_folder(settings) as folder:
        session = open_session(settings, memory)
        material = _prepare(session, say)
        folder.write_config(session.settings.plain())
        folder.place("tokenizer.json", lambda path: save_fields(session.fields, path))
        return _train(session, material, folder, False, quiet, say)


def resume(
    path: str | Path,
    overrides: Mapping[str, Any] | None = None,
    memory: Mapping[str, Any] | None = None,
    quiet: bool = False,
    say: Say = lambda line: None,
) -> tuple[Run, Outcome]:
    """Go on with the training in a folder, as if it had never stopped; `train.` keys may be changed."""
    folder = RunFolder.open(path)
    settings = parse_settings(folder.config())
    if overrides:
        _check_overrides(overrides)
        settings = parse_settings(merge(settings.plain(), overrides))
    folder.require_tokenizer()
    session = open_session(settings, memory, load_fields(folder.tokenizer_path))
    material = _prepare(session, say)
    if overrides:
        check_training(settings.train, validated=material.valid is not None)
        with folder.lock():  # not under a training that is going on
            folder.write_config(session.settings.plain())
    return _train(session, material, folder, True, quiet, say)


def _check_overrides(overrides: Mapping[str, Any]) -> None:
    allowed = ("train", "threads", "device")
    for key in overrides:
        if key not in allowed:
            raise ConfigError(
                f"A training that goes on keeps its `{key}`; only {', '.join(allowed)} may change. "
                "Start a new run instead."
            )


@contextmanager
def _new_folder(settings: Settings) -> Iterator[RunFolder]:
    """Hold a new folder for the run; take it away again if it came to nothing, for a mistake to be mended."""
    chosen = settings.general.run
    made = chosen is None or not Path(chosen).exists()
    folder = RunFolder.create(chosen, f"{settings.task}-{settings.model.families}")
    try:
        yield folder
    except InputError:
        if made:
            folder.discard()
        raise
    finally:
        if made:
            _remove_empty(folder, default=chosen is None)


def _remove_empty(folder: RunFolder, default: bool) -> None:
    """Remove a folder in which nothing stands, and `runs` above it if that was the default place."""
    with suppress(OSError):
        folder.path.rmdir()
        if default:
            folder.path.parent.rmdir()


class Material(NamedTuple):
    """What is trained on, and what checkpoints are chosen by."""

    data: Dataset
    valid: Dataset | None


def _prepare(session: Session, say: Say) -> Material:
    """Encode training and validation data, saying what was made of them."""
    parts = session.parts
    if parts.train is None:
        raise InputError("Training needs data. Give a file: data.train=FILE.")
    data = _encode(session, "train", parts.train, say)
    valid = None if parts.valid is None else _encode(session, "valid", parts.valid, say)
    for name, field in session.fields.items():
        say(f"{name}: {describe_field(field)}")
    say(f"model: {describe_model(session)}")
    return Material(data, valid)


def _encode(session: Session, name: str, rows: Rows, say: Say) -> Dataset:
    say(f"{name}: {rows.description}")
    data = session.dataset(rows)
    notes = [f"{len(data):,} items", *left_out(data), rows.counts.summary()]
    say(f"{name}: {', '.join(filter(None, notes))}")
    for line in advice(data, session.fields):
        say(f"{name}: {line}")
    return data


def _train(
    session: Session, material: Material, folder: RunFolder, resuming: bool, quiet: bool, say: Say
) -> tuple[Run, Outcome]:
    settings = session.settings
    say(f"run: {folder}")
    feed = session.task.feed(material.data, settings.general.seed)
    outcome = run_training(
        session.model,
        session.task,
        feed,
        material.valid,
        settings.train,
        folder,
        settings.general.seed,
        resuming,
        on_event=_warn if quiet else None,
        quiet=quiet,
    )
    return Run(folder, session), outcome


def _warn(name: str, values: Mapping[str, Any]) -> None:
    """Tell a warning where no progress is shown: a damaged checkpoint is passed over, say."""
    if name == "warning":
        print(values["message"], file=sys.stderr)
