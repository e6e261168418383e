"""Pictures of where a translating run looked while it wrote."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from weft.api.run import Run
from weft.core.errors import InputError
from weft.data.lines import read_lines
from weft.data.locate import locate
from weft.reporting import Alignment

LONGEST = 60  # tokens a side; a larger table is no picture

Pairs = tuple[tuple[int, int], ...]


def alignments(run: Run, sources: Iterable[Any], count: int = 4) -> list[Alignment]:
    """Return the alignments of the first `count` sources that fit a picture: weights, averaged over heads.

    A run without attention to a source has none.
    """
    return _first(run, ((source, ()) for source in sources), count)


def part_alignments(run: Run, part: str = "test", count: int = 4) -> list[Alignment]:
    """Return the alignments of a part's first items, with the true ones where a file tells them.

    The truth about NAME.tsv stands in NAME.align: a line an item, pairs `source-target` of characters.
    """
    if not attends(run):
        return []
    rows, known = run.rows(part=part), known_pairs(run, part)
    return _first(run, ((row.values[0], known.get(row.number, ())) for row in rows), count)


def _first(run: Run, items: Iterator[tuple[Any, Pairs]], count: int) -> list[Alignment]:
    if not attends(run):
        return []
    made = (_align(run, source, truth) for source, truth in items)
    return list(islice((one for one in made if one is not None), count))


def attends(run: Run) -> bool:
    """Tell whether the run's model looks at a source while it writes."""
    return set(run.task.sides) == {"encoder", "decoder"} and run.settings.model.common.attention != "none"


def _align(run: Run, source: Any, truth: Pairs) -> Alignment | None:
    if not 0 < len(run.session.fields["source"].encode(source)) <= LONGEST:
        return None
    trace = run.trace(source)
    if not 0 < len(trace.target) <= LONGEST:
        return None
    fits = len(trace.source) == len(source)  # pairs count characters
    return Alignment(trace.weights(), trace.source, trace.target, truth=truth if fits else ())


def known_pairs(run: Run, part: str) -> dict[int, Pairs]:
    """Return the true (target, source) pairs of each line of a part's file, as far as they are told."""
    paths = getattr(run.settings.data, part)
    if len(paths) != 1:
        return {}
    try:
        path = Path(locate(paths[0])).with_suffix(".align")
        return {number: _pairs(line) for number, line in islice(read_lines(path), 1000)}
    except (InputError, ValueError, OSError):
        return {}


def _pairs(line: str) -> Pairs:
    """Read `3-0 4-1` (source-target) as ((0, 3), (1, 4))."""
    pairs = (pair.split("-") for pair in line.split())
    return tuple((int(target), int(source)) for source, target in pairs)
