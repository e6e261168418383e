"""What stands on stdin, as raw inputs of a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from io import BufferedIOBase
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from weft.core.errors import DataError
from weft.data import ReadOptions
from weft.data.lines import LineCounts, stream_lines
from weft.data.readers.cells import convert
from weft.data.rows import counted
from weft.data.source import layout

if TYPE_CHECKING:
    from weft.api.run import Run

STDIN = Path("stdin")
NUMBERS = ("values", "frames")


def read_inputs(stream: Any, run: Run) -> Iterator[Any]:
    """Yield the raw input of each line as it comes, None for a blank one."""
    options = run.settings.data.share(ReadOptions)
    lines = stream_lines(cast("BufferedIOBase", stream), STDIN, options.max_line)
    check, empty = line_check(run), run.settings.decoding.empty
    for number, line in lines:
        if not line.strip():
            yield "" if empty else None
            continue
        try:
            check(line)
            yield read_input(line, run, options)
        except (ValueError, DataError) as error:
            raise DataError(f"stdin, line {number}: {error}") from None


def read_input(line: str, run: Run, options: ReadOptions) -> Any:
    """Return a line's raw input; numbers are tried on the field, whose shape they must have."""
    if run.input_kind not in NUMBERS:
        return convert(run.input_kind, read_cell(line, run), options, LineCounts())
    raw = _read_numbers(line, run, options)
    next(iter(run.session.fields.values())).encode(raw)
    if hasattr(run.task, "check_input"):
        run.task.check_input(raw)
    return raw


def _read_numbers(line: str, run: Run, options: ReadOptions) -> Any:
    """Return the numbers of a line, or say what is wrong with them and what a line must hold."""
    cell = read_cell(line, run)
    try:
        return convert(run.input_kind, cell, options, LineCounts())
    except ValueError as error:
        reason = str(error).partition(". ")[0].rstrip(".")  # its way out is for files
        if isinstance(cell, str):
            reason = f"`{line.strip():.40}` is not a list of numbers"
        raise ValueError(f"{reason}. Give {form(run)}.") from None


def form(run: Run) -> str:
    """Say how a line of numbers is written for this run."""
    if run.input_kind == "frames":
        return "one JSON list a line: [[0, 1, …], …], the 88 keys of each frame"
    width = next(iter(run.session.fields.values())).element[0]
    history = getattr(run.settings.task_config, "history", None)
    least = f"at least {counted(history, 'step')}" if history else "steps"
    return f"one JSON list a line: [[v1, v2, …], …] of {least} of {counted(width, 'channel')}"


def read_cell(line: str, run: Run) -> Any:
    """Return what a line holds: itself, or its JSON where training read numbers or objects."""
    if run.input_kind in NUMBERS and line.lstrip().startswith("["):
        return _json(line)
    if line.startswith("{") and _trained_on(run, ".jsonl"):
        return _value(_json(line), run.settings.data.columns)
    return line


def _json(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"This is not JSON ({error}).") from None


def _value(item: dict[str, Any], columns: tuple[str, ...]) -> Any:
    """Return the input's value: of the first column training read."""
    key = columns[0] if columns else next(iter(item), "")
    if key not in item:
        raise ValueError(f"The object has no key `{key}`. It has: {', '.join(item) or 'none'}.")
    return item[key]


def line_check(run: Run) -> Callable[[str], None]:
    """Return what refuses a line that stood in the training file, but is no input."""
    data, schema = run.settings.data, run.settings.schema()
    found = layout(data.train, data.share(ReadOptions), tuple(schema.values()))
    if found == "tsv" and len(schema) == 1:
        return _accept
    return _CHECKS.get(found or "", _accept)


def _trained_on(run: Run, ending: str) -> bool:
    return any(ending in Path(path).suffixes for path in run.settings.data.train)


def _refuse_tab(line: str) -> None:
    if "\t" in line:
        raise ValueError(
            "It holds a tab, but an input is one column. Cut the others off: cut -f1 FILE | weft predict RUN"
        )


def _refuse_header(line: str) -> None:
    if line.startswith(">"):
        raise ValueError("It is a FASTA header. Give one sequence a line, without headers.")


def _refuse_columns(line: str) -> None:
    if "\t" in line:
        raise ValueError("It holds a tab, as columns do. Give a sentence a line, words separated by spaces.")


def _accept(line: str) -> None:
    pass


_CHECKS = {
    "tsv": _refuse_tab,
    "fasta": _refuse_header,
    "conll": _refuse_columns,
    "conllu": _refuse_columns,
}
