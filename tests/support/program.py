"""Running the program as a user does: in a process of its own."""

import subprocess
import sys
from pathlib import Path

from tree import ROOT


def weft(*words: str, folder: Path = ROOT, text: str = "") -> subprocess.CompletedProcess[str]:
    """Run `weft WORDS` in `folder` with `text` on stdin."""
    code = "from weft.cli.main import main; main()"
    return run_python(code, *words, folder=folder, text=text)


def run_python(
    code: str, *words: str, folder: Path = ROOT, text: str = ""
) -> subprocess.CompletedProcess[str]:
    """Run Python code with weft importable."""
    path = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    command = [sys.executable, "-c", path + code, *words]
    return subprocess.run(command, cwd=folder, input=text, capture_output=True, text=True, timeout=300)
