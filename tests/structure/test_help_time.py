"""The program answers at once."""

import resource
import statistics
import subprocess
import sys
import time

from tree import ROOT

LIMIT = 0.4  # seconds, warm median of 5


def seconds(*words: str) -> float:
    """Return the time a call takes of a processor, or of the clock if that is less.

    It waits for nothing, so on an idle machine the two agree; beside other tests only the first is its own.
    """
    clock, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-m", "weft", *words], cwd=ROOT, check=True, capture_output=True)
    clock, after = time.perf_counter() - clock, resource.getrusage(resource.RUSAGE_CHILDREN)
    return min(clock, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)


def test_help_takes_less_than_a_blink():
    seconds("--help")
    assert statistics.median(seconds("--help") for _ in range(5)) <= LIMIT


def test_nothing_heavy_is_loaded_for_help():
    code = (
        "import sys\n"
        "from weft.cli import main\n"
        "try:\n    main.app(['--help'], prog_name='weft')\nexcept SystemExit:\n    pass\n"
        "heavy = {'torch', 'numpy', 'matplotlib', 'tokenizers', 'safetensors', 'yaml'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {sorted(heavy)}' if heavy else 0)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
