"""Say what is in a data set before anything is trained on it: what is there, what is broken, what leaks."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.core.errors import DataError
from weft.data.lines import Fault, FaultList
from weft.data.rows import Row
from weft.data.source import Rows, digest

_BAR = 30
_SHOWN = 20


@dataclass
class Lengths:
    """How long the items of a field are, in one unit."""

    counts: Counter[int] = field(default_factory=Counter)

    def summary(self) -> dict[str, float]:
        """Return mean, smallest, median, 95th percentile and largest."""
        items = sum(self.counts.values())
        mean = sum(size * count for size, count in self.counts.items()) / max(items, 1)
        shares = {"min": 0.0, "median": 0.5, "p95": 0.95, "max": 1.0}
        places = {name: self._quantile(share, items) for name, share in shares.items()}
        return {"mean": round(mean, 2), **places}

    def _quantile(self, share: float, items: int) -> int:
        """Return the smallest length that at least `share` of the items do not exceed."""
        seen = 0
        for size in sorted(self.counts):
            seen += self.counts[size]
            if seen >= share * items and seen:
                return size
        return 0

    def plain(self) -> dict[str, Any]:
        """Return summary and histogram as plain data."""
        return {**self.summary(), "histogram": [list(bar) for bar in self.histogram()]}

    def histogram(self) -> list[tuple[int, int, int]]:
        """Return (low, high, items) for the lengths 0, 1, 2, 3-4, 5-8, 9-16, ..."""
        bins: Counter[int] = Counter()
        for size, count in self.counts.items():
            bins[math.ceil(math.log2(size)) + 1 if size else 0] += count
        last = max(bins, default=-1)
        return [(*_edges(place), bins[place]) for place in range(min(bins, default=0), last + 1)]


def _edges(place: int) -> tuple[int, int]:
    high = 2 ** (place - 1) if place else 0
    return (high // 2 + 1 if place > 1 else high), high


@dataclass
class Numbers:
    """The numbers of a field."""

    count: int = 0
    missing: int = 0
    total: float = 0.0
    low: float = math.inf
    high: float = -math.inf

    def add(self, values: np.ndarray) -> None:
        """Count the numbers of one item."""
        known = values[~np.isnan(values)]
        self.count += known.size
        self.missing += values.size - known.size
        if known.size:
            self.total += float(known.sum(dtype=np.float64))
            self.low, self.high = min(self.low, float(known.min())), max(self.high, float(known.max()))

    def summary(self) -> dict[str, float | None]:
        """Return count, missing, mean and range."""
        known = self.count > 0
        mean = round(self.total / self.count, 6) if known else None
        span = {"mean": mean, "min": self.low if known else None, "max": self.high if known else None}
        return {"count": self.count, "missing": self.missing, **span}


@dataclass
class FieldTally:
    """What one column of a source holds."""

    kind: str
    lengths: dict[str, Lengths] = field(default_factory=dict)
    vocabulary: dict[str, Counter[str]] = field(default_factory=dict)
    numbers: Numbers | None = None

    def add(self, value: Any) -> None:
        """Count one raw value."""
        if self.kind in ("value", "values", "frames"):
            self._add_numbers(np.asarray(value, dtype=np.float64))
            return
        for unit, parts in _units(self.kind, value).items():
            self.vocabulary.setdefault(unit, Counter()).update(parts)
            if self.kind != "label":
                self.lengths.setdefault(unit, Lengths()).counts[len(parts)] += 1

    def _add_numbers(self, values: np.ndarray) -> None:
        self.numbers = self.numbers or Numbers()
        self.numbers.add(values)
        if values.ndim:
            self.lengths.setdefault("steps", Lengths()).counts[len(values)] += 1

    def plain(self) -> dict[str, Any]:
        """Return the tally as plain data."""
        found: dict[str, Any] = {"kind": self.kind}
        if self.lengths:
            found["lengths"] = {unit: lengths.plain() for unit, lengths in self.lengths.items()}
        if self.vocabulary:
            found["vocabulary"] = {unit: len(words) for unit, words in self.vocabulary.items()}
        if self.kind in ("label", "labels"):
            found["labels"] = dict(self.vocabulary.get("labels", Counter()).most_common())
        if self.numbers:
            found["numbers"] = self.numbers.summary()
        return found


def _units(kind: str, value: Any) -> dict[str, Any]:
    if kind == "text":
        return {"words": value.split(), "characters": value}
    if kind == "words":
        return {"words": value}
    return {"labels": value if isinstance(value, list) else [value]}


@dataclass
class SourceReport:
    """What one source holds and what is wrong with it."""

    name: str
    description: str
    fields: list[FieldTally]
    rows: int = 0
    dropped: int = 0  # rows with a zero-length field
    cut: int = 0  # rows longer than the limit
    duplicates: int = 0  # rows whose input stood before
    conflicts: int = 0  # of these, with another target
    overlap: int = 0  # rows whose input stands in train
    cleaned: str = ""
    unknown: dict[str, float] = field(default_factory=dict)  # "1 words" -> share of them not in train
    unseen: dict[str, list[str]] = field(default_factory=dict)  # "2 labels" -> labels not in train
    faults: list[Fault] = field(default_factory=list)

    def plain(self) -> dict[str, Any]:
        """Return the report as plain data."""
        kept = {key: value for key, value in vars(self).items() if key not in ("fields", "faults")}
        faults = [dict(fault._asdict()) for fault in self.faults]
        return {**kept, "fields": [tally.plain() for tally in self.fields], "faults": faults}


@dataclass
class CheckReport:
    """What a data set holds: one report a source."""

    sources: dict[str, SourceReport]
    max_length: int | None
    unit: str

    @property
    def faults(self) -> list[Fault]:
        """Every broken line of every source."""
        return [fault for report in self.sources.values() for fault in report.faults]

    def plain(self) -> dict[str, Any]:
        """Return the report as plain data for JSON."""
        sources = {name: report.plain() for name, report in self.sources.items()}
        return {"max_length": self.max_length, "unit": self.unit, "sources": sources}


def check(sources: Mapping[str, Rows], max_length: int | None = None, unit: str = "words") -> CheckReport:
    """Read every source once and report what it holds; `train` is what the others are held against.

    `max_length` (in `unit`: words, characters or steps) is the limit above which a row counts as cut.
    """
    order = sorted(sources, key=lambda name: name != "train")
    seen: dict[str, dict[bytes, bytes]] = {}
    reports: dict[str, SourceReport] = {}
    for name in order:
        reports[name], seen[name] = _survey(name, sources[name], max_length, unit)
        if "train" in reports and name != "train":
            _compare(reports[name], reports["train"])
            reports[name].overlap = _overlap(sources[name], seen["train"])
    return CheckReport({name: reports[name] for name in sources}, max_length, unit)


def _survey(name: str, source: Rows, limit: int | None, unit: str) -> tuple[SourceReport, dict[bytes, bytes]]:
    """Read one source; return its report and target digest by input digest."""
    report = SourceReport(name, "", [FieldTally(kind) for kind in source.kinds])
    seen: dict[bytes, bytes] = {}
    faults = FaultList(report.faults)
    view = source.collecting(faults)
    try:
        report.description = view.description
        for row in view:
            _count(report, row, seen, limit, unit)
    except DataError as error:
        if report.rows or not report.faults:  # else the faults of its lines say why nothing was read
            report.faults.append(Fault(str(error), 0, ""))
    report.cleaned = view.counts.summary()
    return report, seen


def _count(report: SourceReport, row: Row, seen: dict[bytes, bytes], limit: int | None, unit: str) -> None:
    report.rows += 1
    for tally, value in zip(report.fields, row.values, strict=True):
        tally.add(value)
    sizes = [_size(tally.kind, value, unit) for tally, value in zip(report.fields, row.values, strict=True)]
    report.dropped += 0 in sizes
    report.cut += limit is not None and max(sizes) > limit
    key, target = digest(row.values[0])[:16], digest(repr(row.values[1:]))[:8]
    report.duplicates += key in seen
    report.conflicts += seen.setdefault(key, target) != target


def _size(kind: str, value: Any, unit: str) -> int:
    if kind in ("label", "value"):
        return 1
    return len(value.split()) if kind == "text" and unit == "words" else len(value)


def _compare(report: SourceReport, train: SourceReport) -> None:
    """Hold the words and labels of a source against those of train."""
    for place, (tally, known) in enumerate(zip(report.fields, train.fields, strict=True)):
        for unit, words in tally.vocabulary.items():
            trained = known.vocabulary.get(unit, Counter())
            unseen = {word: count for word, count in words.items() if word not in trained}
            key = f"{place + 1} {unit}"
            report.unknown[key] = sum(unseen.values()) / max(sum(words.values()), 1)
            if unit == "labels" and unseen:
                report.unseen[key] = sorted(unseen)


def _overlap(source: Rows, train: dict[bytes, bytes]) -> int:
    """Count the rows of a source whose input stands in train."""
    count = 0
    try:
        for row in source.collecting(FaultList()):
            count += digest(row.values[0])[:16] in train
    except DataError:
        pass  # said once already, by the survey
    return count


def render(report: CheckReport) -> str:
    """Return a report as text for a terminal."""
    blocks = [_render_source(source, report) for source in report.sources.values()]
    bad = len(report.faults)
    verdict = f"{bad:,} faults. Mend them." if bad > 1 else "1 fault. Mend it." if bad else "No fault."
    return "\n\n".join([*blocks, verdict])


def _render_source(source: SourceReport, report: CheckReport) -> str:
    lines = [f"{source.name}  {source.description}", f"  rows           {source.rows:,}"]
    lines += [f"  cleaned        {source.cleaned}"] if source.cleaned else []
    lines += [f"  dropped        {source.dropped:,} with an empty field"] if source.dropped else []
    if source.cut:
        lines.append(f"  cut            {source.cut:,} longer than {report.max_length:,} {report.unit}")
    if source.duplicates:
        conflicts = f"{source.conflicts:,} with another target"
        lines.append(f"  repeated       {source.duplicates:,} inputs, {conflicts}")
    lines += [f"  also in train  {source.overlap:,} inputs"] if source.overlap else []
    for place, tally in enumerate(source.fields):
        lines += _render_field(place + 1, tally, source)
    lines += _render_faults(source.faults)
    return "\n".join(lines)


def _render_faults(faults: list[Fault]) -> list[str]:
    """Return the first faults in full and the numbers of all the others."""
    lines = [f"  ! {str(fault).strip()}" for fault in faults[:_SHOWN]]
    rest = ", ".join(str(fault.line) for fault in faults[_SHOWN:])
    return [*lines, f"  ! and lines {rest}"] if rest else lines


def _render_field(place: int, tally: FieldTally, source: SourceReport) -> list[str]:
    lines = [f"  field {place}: {tally.kind}"]
    for unit, words in tally.vocabulary.items():
        key = f"{place} {unit}"
        unknown = f", {source.unknown[key]:.2%} not in train" if key in source.unknown else ""
        lines.append(f"    {sum(words.values()):,} {unit}, {len(words):,} different{unknown}")
        if key in source.unseen:
            lines.append(f"    not in train (scored wrong): {', '.join(source.unseen[key][:10])}")
    if "labels" in tally.vocabulary:
        lines.append(f"    {_shares(tally.vocabulary['labels'])}")
    if tally.numbers:
        lines.append("    " + ", ".join(f"{key} {value}" for key, value in tally.numbers.summary().items()))
    for unit, lengths in tally.lengths.items():
        lines += _render_lengths(unit, lengths)
    return lines


def _shares(labels: Counter[str]) -> str:
    total = max(sum(labels.values()), 1)
    shown = ", ".join(f"{label} {count / total:.1%}" for label, count in labels.most_common(10))
    return shown + (", ..." if len(labels) > 10 else "")


def _render_lengths(unit: str, lengths: Lengths) -> list[str]:
    summary = ", ".join(f"{name} {value:g}" for name, value in lengths.summary().items())
    bins = lengths.histogram()
    top = max((count for _, _, count in bins), default=1)
    bars = [_bar(low, high, count, top) for low, high, count in bins] if len(bins) > 1 else []
    return [f"    length in {unit}: {summary}", *bars]


def _bar(low: int, high: int, count: int, top: int) -> str:
    span = f"{low}-{high}" if low != high else str(low)
    return f"      {span:>11} {'#' * math.ceil(_BAR * count / top):<{_BAR}} {count:,}"
