"""An explanation as tables of words."""

from __future__ import annotations

from typing import NamedTuple

from weft.explain.explanation import Explanation

_UNITS = ((1e18, "E"), (1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"))


class Table(NamedTuple):
    """A title, a header (perhaps empty), and rows as wide."""

    title: str
    header: tuple[str, ...]
    rows: list[tuple[str, ...]]


def tables(e: Explanation) -> list[Table]:
    """Return what an explanation says, table by table."""
    return [_parts(e), _memory(e), _work(e)]


def render(e: Explanation) -> str:
    """Return an explanation as plain text."""
    blocks = [_lay_out(table) for table in tables(e)]
    return "\n\n".join([*blocks, *(f"Warning: {line}" for line in e.warnings())])


def amount(number: float) -> str:
    """Write a number with three digits and a unit: 12.3 G."""
    scale, unit = next(((s, u) for s, u in _UNITS if number >= s), (1.0, ""))
    return f"{number / scale:.3g} {unit}".rstrip()


def size(number: float) -> str:
    """Write bytes: 12.3 MB."""
    return f"{amount(number)}B" if number >= 1000 else f"{number:.0f} B"


def span(seconds: float) -> str:
    """Write a time: 40 s, 12 min, 3.5 h."""
    for scale, unit in ((86400.0, "days"), (3600.0, "h"), (60.0, "min")):
        if seconds >= 2 * scale:
            return f"{seconds / scale:.1f} {unit}"
    return f"{seconds:.0f} s"


def _parts(e: Explanation) -> Table:
    rows = [
        (p.name, f"{p.parameters:,}", f"{p.parameters / max(e.parameters, 1):.1%}", amount(p.flops))
        for p in e.parts
    ]
    rows.append(("all", f"{e.parameters:,}", "100.0%", amount(e.forward)))
    title = f"{e.families}, width {e.width}"
    if e.budget is not None:
        title += f" (for {amount(e.budget.wanted)} parameters: {e.budget.deviation:+.2%})"
    return Table(title, ("part", "parameters", "share", f"FLOPs {_each(e)}, forward"), rows)


def _each(e: Explanation) -> str:
    return f"{'an' if e.unit[0] in 'aeiou' else 'a'} {e.unit}"


def _memory(e: Explanation) -> Table:
    rows = []
    for name, parts in (("training", e.memory.training), ("use", e.memory.use)):
        rows.append((name, size(sum(parts.values()))))
        rows += [(f"  {part}", size(number)) for part, number in parts.items()]
    if e.memory.present is not None:
        rows.append(("the device has", size(e.memory.present)))
    return Table("memory", ("", "bytes"), rows)


def _work(e: Explanation) -> Table:
    plan = e.plan
    rows = [
        (f"FLOPs {_each(e)}, forward", amount(e.forward)),
        (f"FLOPs {_each(e)}, forward and backward", amount(e.both)),
        ("items a batch" if e.unit == "item" else f"target {e.unit}s a batch", f"{plan.batch_tokens:,.0f}"),
        ("batches an epoch", "unknown" if plan.batches is None else f"{plan.batches:,}"),
        ("steps", "no limit known" if plan.steps is None else f"{plan.steps:,}"),
        ("FLOPs of the training", "unknown" if e.flops is None else amount(e.flops)),
    ]
    if e.speed is not None:
        rows.append(("speed here", f"{e.speed.tokens_per_second:,.0f} {e.unit}s/s"))
    if e.seconds is not None:
        rows.append(("time here, without validation", f"about {span(e.seconds)}"))
    for reach in e.reaches:
        rows.append((f"{reach.side} sees", f"{reach.sees:,} steps; the longest item has {reach.longest:,}"))
    if e.assumed:
        rows.append(("assumed", e.assumed))
    return Table("training", ("", ""), rows)


def _lay_out(table: Table) -> str:
    rows = ([table.header] if any(table.header) else []) + table.rows
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = [
        "  ".join([row[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(row[1:], widths[1:], strict=True))])
        for row in rows
    ]
    return "\n".join([table.title, *(f"  {line}".rstrip() for line in lines)])
