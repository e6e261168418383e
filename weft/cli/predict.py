"""`weft predict`: answers to lines on stdin, one line each."""

from __future__ import annotations

import json as jsonlib
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import TextIOWrapper
from typing import TYPE_CHECKING, Annotated, Any

import typer

from weft.cli.evaluate import Checkpoint, RunPath, Words
from weft.cli.overrides import parse_overrides
from weft.cli.printing import tell
from weft.core.config import merge
from weft.core.errors import ConfigError

if TYPE_CHECKING:
    from weft.api.ensemble import Ensemble
    from weft.api.run import Run
    from weft.tasks import Prediction

Answer = Callable[[Iterable[Any]], "Iterator[Prediction]"]


def predict(
    run: RunPath,
    words: Words = None,
    json: Annotated[
        bool, typer.Option("--json", help="Print a JSON object a line, with scores and n-best.")
    ] = False,
    checkpoint: Checkpoint = "best",
    ensemble: Annotated[
        list[str] | None,
        typer.Option(metavar="RUN", help="Answer together with this run; may be given several times."),
    ] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print tokens as they come.")] = False,
    unbuffered: Annotated[
        bool, typer.Option("--unbuffered", "-u", help="Answer each line at once, not in batches.")
    ] = False,
    empty: Annotated[
        bool, typer.Option("--empty", help="Answer empty lines too: a language run begins a text.")
    ] = False,
) -> None:
    """Answer lines: weft predict RUN < in > out.

    One line out for each line in. Lines are inputs as in training, without the target; an empty
    line stays empty, unless --empty is given. Texts, words between spaces (tag) and sequences of
    residues stand as they are; numbers are one JSON list of steps a line: [[v1, v2, …], …] (forecast:
    at least task.history steps; music: 88 zeros and ones a frame). Settings: decoding.KEY=VALUE
    (decoding.method=beam), batch.tokens=, device=, threads=.
    """
    if stream and json:
        raise ConfigError("Streamed tokens are no JSON. Leave --stream or --json out.")
    overrides = parse_overrides(words or [])
    if empty:
        overrides = merge(overrides, {"decoding": {"empty": True}})
    speaker, first = open_speaker(run, ensemble or [], checkpoint, overrides)
    _warn(first, json)
    at_once = stream or unbuffered or sys.stdin.isatty()
    if sys.stdin.isatty():
        tell("Type an input a line; Ctrl-D ends.")
    if isinstance(sys.stdout, TextIOWrapper):
        sys.stdout.reconfigure(encoding="utf-8", errors="replace")
    inputs = _inputs(first)
    if stream:
        lines = streamed(speaker, inputs)
    else:
        lines = (as_json(p) if json else as_line(p) for p in answers(speaker, inputs, at_once))
    for text in lines:
        sys.stdout.write(text)
        if at_once:
            sys.stdout.flush()


def open_speaker(
    path: str, others: list[str], checkpoint: str, overrides: dict[str, Any]
) -> tuple[Run | Ensemble, Run]:
    """Open a run, or several that answer together; return who answers, and the first run."""
    from weft.api.ensemble import Ensemble
    from weft.cli.opening import USING, open_with

    runs = [open_with(name, checkpoint, overrides, USING) for name in (path, *others)]
    return (Ensemble(runs) if others else runs[0]), runs[0]


def _warn(run: Run, json: bool) -> None:
    """Refuse to begin texts with a run that cannot; say when answers are found but not printed."""
    decoding = run.decoding()
    if decoding.empty and run.settings.task != "language":
        raise ConfigError(
            f"Only a language run begins a text from nothing, but {run.path} does {run.settings.task}. "
            "Leave --empty (decoding.empty) out."
        )
    found = {"beam": decoding.nbest, "sample": decoding.samples}.get(decoding.method, 1)
    if found > 1 and not json and hasattr(run.task, "stepper"):
        tell(f"Each line has {found} answers, of which the first is printed. Add --json for all of them.")


def _inputs(run: Run) -> Iterator[Any]:
    from weft.cli.inputs import read_inputs

    return read_inputs(sys.stdin.buffer, run)


def answers(speaker: Run | Ensemble, inputs: Iterator[Any], at_once: bool) -> Iterator[Prediction]:
    """Yield a prediction for each input, an empty one for None; `at_once` reads no further than asked."""
    if at_once:
        for number, raw in _numbered(inputs):
            yield from answer_all([raw], lambda raws, n=number: speaker.predictions(raws, first=n))
    else:
        yield from answer_all(inputs, speaker.predictions)


def _numbered(inputs: Iterable[Any]) -> Iterator[tuple[int, Any]]:
    """Number the inputs from 0 as a batch would, which never sees the blank ones: samples are then alike."""
    number = 0
    for raw in inputs:
        yield number, raw
        number += raw is not None


def answer_all(inputs: Iterable[Any], answer: Answer) -> Iterator[Prediction]:
    """Answer what is not None; where None stood, put an empty prediction."""
    from weft.tasks import Prediction

    waiting: deque[bool] = deque()  # whether each input read ahead is blank

    def given() -> Iterator[Any]:
        for raw in inputs:
            waiting.append(raw is None)
            if raw is not None:
                yield raw

    for prediction in answer(given()):
        while waiting.popleft():
            yield Prediction("")
        yield prediction
    yield from (Prediction("") for _ in waiting)


def streamed(speaker: Run | Ensemble, inputs: Iterator[Any]) -> Iterator[str]:
    """Yield the pieces of each answer as they come, a newline after each."""
    for number, raw in _numbered(inputs):
        if raw is not None:
            yield from speaker.stream(raw, number=number)
        yield "\n"


def as_line(prediction: Prediction) -> str:
    r"""Write a prediction as exactly one line: a newline in it becomes \n."""
    return prediction.text.replace("\r", "\\r").replace("\n", "\\n") + "\n"


def as_json(prediction: Prediction) -> str:
    """Write a prediction as a line of JSON."""
    return jsonlib.dumps({"text": prediction.text, **prediction.plain}, ensure_ascii=False) + "\n"
