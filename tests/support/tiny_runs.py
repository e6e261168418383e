"""Runs so small that a test can train its own, and the program called within the test's process."""

from __future__ import annotations

import io
import signal
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

LETTERS = "abcd"


class Ended(NamedTuple):
    """What a verb left behind."""

    code: int
    out: str
    err: str


def weft_inside(*words: str, stdin: bytes = b"") -> Ended:
    """Run `weft WORDS` in this process, `stdin` on its standard input."""
    from weft.cli.errors import guard
    from weft.cli.main import app

    out, err = io.StringIO(), io.StringIO()
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", _stream(stdin)):
            code = guard(lambda: app(list(words), prog_name="weft", standalone_mode=False))
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return Ended(code, out.getvalue(), err.getvalue())


def _stream(data: bytes) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8")


def pairs() -> list[tuple[str, str]]:
    """Return 64 words of three letters, each beside itself backwards."""
    words = [a + b + c for a in LETTERS for b in LETTERS for c in LETTERS]
    return [(word, word[::-1]) for word in words]


def write_pairs(folder: Path) -> Path:
    """Write the pairs as a table whose every part holds all of them; return the training file."""
    text = "".join(f"{source}\t{target}\n" for source, target in pairs())
    for part in ("train", "valid", "test"):
        (folder / f"{part}.tsv").write_text(text, encoding="utf-8")
    return folder / "train.tsv"


def reverse_words(folder: Path, *more: str, steps: str = "train.steps=12") -> list[str]:
    """Return the words of `weft train` that make a small translating run in `folder`/run."""
    write_pairs(folder)
    files = [f"data.{part}={folder / part}.tsv" for part in ("train", "valid", "test")]
    model = ["model=lstm+additive", "model.width=24", "model.input_dropout=0", "train.lr=0.02"]
    rest = ["task=translate", "data.tokens=char", "threads=1", "batch.tokens=256", steps]
    return ["train", *files, *model, *rest, f"run={folder / 'run'}", *more]


def train_reverse(folder: Path, *more: str, steps: int = 12) -> Path:
    """Train the small translating run and return its folder."""
    ended = weft_inside(*reverse_words(folder, *more, steps=f"train.steps={steps}"), "--quiet", "--no-report")
    assert ended.code == 0, ended.err
    return folder / "run"


def train_classes(folder: Path) -> Any:
    """Train a small classifier from rows in memory and return the run."""
    import weft

    rows = [(f"{word} {i % 2}", ("even", "odd")[i % 2]) for i in range(40) for word in ("x", f"y{i}")]
    model = {"family": "gru", "width": 8}
    steps = {"steps": 40, "lr": 0.02, "validate_every": 5}
    return weft.train(rows, task="classify", model=model, threads=1, train=steps, run=folder / "classes")
