"""Every way a verb can end, as the shell sees it."""

import errno
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from program import run_python
from tree import ROOT

from weft.cli.errors import translate
from weft.core.errors import InputError, ResourceError

CASES = {
    "nothing": ("pass", 0, ""),
    "a user's mistake": ("raise DataError('Line 3 holds\\nno tab.')", 2, "weft: Line 3 holds no tab.\n"),
    "a damaged artefact": ("raise ArtefactError('Broken.')", 3, "weft: Broken.\n"),
    "no memory": (
        "raise MemoryError",
        4,
        "weft: Memory does not suffice: MemoryError. Try a smaller model or batch.\n",
    ),
    "a signal saved": ("raise Interrupted('Saved.', 15)", 143, "weft: Saved.\n"),
    "a keyboard": ("raise KeyboardInterrupt", 130, "weft: Interrupted.\n"),
    "a chosen code": ("return 7", 7, ""),
}


def guarded(body: str) -> str:
    return (
        "import sys, time\nfrom weft.cli.errors import guard\nfrom weft.core.errors import *\n"
        f"def program():\n    {body}\nsys.exit(guard(program))\n"
    )


@pytest.mark.parametrize("case", CASES)
def test_each_end_has_its_line_and_code(case):
    body, code, line = CASES[case]
    result = run_python(guarded(body))
    assert (result.returncode, result.stderr, result.stdout) == (code, line, "")


def test_a_bug_leaves_one_line_and_a_log():
    result = run_python(guarded("1 / 0"))
    assert result.returncode == 1
    start, _, path = result.stderr.strip().rpartition(" ")
    assert start == "weft: ZeroDivisionError: division by zero. This is a bug of weft; the full report is in"
    log = Path(path.removesuffix("."))
    assert "Traceback" in log.read_text()
    log.unlink()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_quietly(number, code):
    body = "print('ready', flush=True); time.sleep(60)"
    process = subprocess.Popen(
        [sys.executable, "-c", guarded(body)], cwd=ROOT, stdout=-1, stderr=-1, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(0.05)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert stderr in ("weft: Interrupted.\n", "weft: Terminated.\n")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_an_import_that_would_swallow_it(number, tmp_path):
    swallowing = (
        f"import signal\ntry:\n    signal.raise_signal({int(number)})\nexcept BaseException:\n    pass\n"
    )
    (tmp_path / "swallowing.py").write_text(swallowing, encoding="utf-8")
    body = f"sys.path.insert(0, {str(tmp_path)!r}); import swallowing; print('went on')"
    result = run_python(guarded(body))
    assert (result.returncode, result.stdout) == (128 + number, "")
    assert result.stderr in ("weft: Interrupted.\n", "weft: Terminated.\n")


def test_a_keyboard_interrupt_of_a_verb_has_its_line():
    program = "import os, signal, typer\nfrom weft.cli import main\n"
    struck = "main.app.command('x')(lambda: os.kill(os.getpid(), signal.SIGINT))\n"
    result = run_python(program + struck + "sys.argv = ['weft', 'x']\nmain.main()\n")
    assert (result.returncode, result.stderr) == (130, "weft: Interrupted.\n")


def test_a_reader_of_the_help_that_left_is_no_error():
    command = f'"{sys.executable}" -m weft --help | true; exit ${{PIPESTATUS[0]}}'
    result = subprocess.run(["bash", "-c", command], cwd=ROOT, capture_output=True)
    assert (result.returncode, result.stderr) == (0, b"")


def test_a_reader_that_left_is_no_error():
    command = f'"{sys.executable}" -c "$CODE" | head -n 1; exit ${{PIPESTATUS[0]}}'
    code = guarded("[print('x' * 100) for _ in range(10000)]")
    environment = {"CODE": code, "PATH": "/usr/bin:/bin"}
    result = subprocess.run(["bash", "-c", command], cwd=ROOT, env=environment, capture_output=True)
    assert (result.returncode, result.stderr, result.stdout) == (0, b"", b"x" * 100 + b"\n")


def test_a_broken_pipe_elsewhere_is_not_hidden():
    result = run_python(guarded("raise BrokenPipeError('a worker')"))
    assert result.returncode == 1


def test_errors_of_the_system_are_the_users_or_the_disks():
    missing = translate(FileNotFoundError(errno.ENOENT, "No such file or directory", "x.tsv"))
    assert isinstance(missing, InputError)
    assert str(missing) == "Cannot use `x.tsv`: no such file or directory."
    full = translate(OSError(errno.ENOSPC, "No space left on device"))
    assert isinstance(full, ResourceError)
    assert str(full) == "The disk is full. Free some space."
    assert translate(OSError(errno.EIO, "Input/output error")) is None


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP])
def test_a_place_where_nothing_can_be_written_is_the_users(number):
    assert isinstance(translate(OSError(number, "No", "runs")), InputError)


def test_torchs_refusal_of_memory_is_recognised():
    error = RuntimeError(
        "[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate 9 bytes.\nmore"
    )
    assert isinstance(translate(error), ResourceError)
