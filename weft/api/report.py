"""report.html of a run, with pictures of where it looked."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from weft.api.alignments import attends, part_alignments
from weft.api.run import Run
from weft.core.errors import InputError
from weft.reporting import Alignment, write_run_report


def write_report(run: Run, count: int = 4, say: Callable[[str], object] = lambda line: None) -> Path:
    """Write report.html into the run's folder and return its path; `count` alignments of test items in it.

    An evaluation made before (evaluation.json) is shown.
    """
    return write_run_report(run.path, alignments=pictures(run, count, say), parameters=run.parameters)


def pictures(run: Run, count: int, say: Callable[[str], object]) -> list[Alignment]:
    """Return alignments of test items, else of validation items; none where the data are gone."""
    if not attends(run):
        return []
    for part in ("test", "valid"):
        try:
            return part_alignments(run, part, count)
        except InputError as error:
            say(f"No alignments of {part} items: {error}")
    return []
