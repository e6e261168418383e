"""One self-contained page: text, tables, pictures inside, light style. Works offline and on a phone."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Sequence
from html import escape

from matplotlib.figure import Figure

from weft.reporting.figures import png

PIXELS = 96  # per inch, as browsers count

STYLE = """
:root { color-scheme: light; --ink: #222; --soft: #666; --line: #ddd; --good: #eef6f1; --bad: #fdf0e9 }
* { box-sizing: border-box }
body { margin: 0 auto; padding: 1.5rem 1rem 4rem; max-width: 70rem; color: var(--ink); background: #fff;
  font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif }
h1 { font-size: 1.7rem; line-height: 1.2; margin: 0 0 .4rem }
h2 { font-size: 1.2rem; margin: 2.4rem 0 .6rem; padding-top: .6rem; border-top: 1px solid var(--line) }
p { max-width: 46rem; margin: .4rem 0 }
p.note, figcaption, footer { color: var(--soft); font-size: .875rem }
.scroll { overflow-x: auto; margin: .8rem 0 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .35rem .9rem .35rem 0; text-align: right; vertical-align: top; white-space: nowrap }
th:first-child, td:first-child { text-align: left }
thead th { border-bottom: 2px solid var(--ink); font-weight: 600; white-space: normal;
  vertical-align: bottom }
tbody td { border-bottom: 1px solid var(--line) }
td small { display: block; color: var(--soft); font-size: .8rem }
table.text th, table.text td { text-align: left; white-space: pre-wrap; overflow-wrap: anywhere;
  min-width: 7rem }
table.text td { font-family: ui-monospace, "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
  font-size: .875rem }
div.wrong { background: var(--bad); padding: 0 .3rem }
div.right { background: var(--good); padding: 0 .3rem }
mark { background: #f6c9ae; color: inherit }
.row { display: flex; flex-wrap: wrap; gap: 1rem 2rem; align-items: flex-start }
figure { margin: .6rem 0; max-width: 100% }
figure img { max-width: 100%; height: auto; display: block }
figure.wide { overflow-x: auto }
figure.wide img { max-width: none }
h3 { font-size: 1rem; margin: 1.2rem 0 .2rem }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1rem; margin: .8rem 0;
  font-size: .9rem }
dt { color: var(--soft) }
dd { margin: 0; overflow-wrap: anywhere }
pre { overflow-x: auto; padding: .8rem; background: #f6f6f6; font-size: .8rem; line-height: 1.4 }
footer { margin-top: 3rem }
"""


class Markup(str):
    """Text that is HTML already; all other text is escaped."""


def markup(text: str) -> Markup:
    """Return text as HTML, special characters escaped; Markup stays as it is."""
    return text if isinstance(text, Markup) else Markup(escape(text))


def page(title: str, parts: Iterable[str], footer: str = "") -> str:
    """Lay out a whole page."""
    body = "\n".join(part for part in map(markup, parts) if part)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{markup(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"<h1>{markup(title)}</h1>\n{body}\n<footer>{markup(footer)}</footer>\n</body>\n</html>\n"
    )


def join(parts: Iterable[str]) -> Markup:
    """Put parts one after another."""
    return Markup("\n".join(markup(part) for part in parts))


def section(title: str, *parts: str) -> Markup:
    """Put a heading above parts; nothing at all when every part is empty."""
    body = [part for part in parts if part]
    return join([Markup(f"<h2>{markup(title)}</h2>"), *body]) if body else Markup("")


def paragraph(text: str, note: bool = False) -> Markup:
    """Write a paragraph, or a note in small grey letters."""
    return Markup(f"<p{_kind('note' if note else '')}>{markup(text)}</p>") if text else Markup("")


def strong(text: str) -> Markup:
    """Write text bold."""
    return Markup(f"<strong>{markup(text)}</strong>")


def small(text: str, below: str) -> Markup:
    """Write text with a smaller line below."""
    return Markup(f"{markup(text)}<small>{markup(below)}</small>") if below else markup(text)


def table(header: Sequence[str], rows: Iterable[Sequence[str]], kind: str = "") -> Markup:
    """Write a table: the first column to the left, numbers to the right; `kind="text"` for prose."""
    head = "".join(f"<th>{markup(cell)}</th>" for cell in header)
    lines = ("".join(f"<td>{markup(cell)}</td>" for cell in row) for row in rows)
    body = "\n".join(f"<tr>{line}</tr>" for line in lines)
    return Markup(
        f"<div{_kind('scroll')}><table{_kind(kind)}>"
        f"<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table></div>"
    )


def marked(text: str, right: bool) -> Markup:
    """Shade text as right or wrong, saying so to those who do not see the shade."""
    return Markup(f"<div{_kind('right' if right else 'wrong')}>{'✓' if right else '✗'} {markup(text)}</div>")


def picture(figure: Figure, alt: str, caption: str = "", wide: bool = False) -> Markup:
    """Put a figure inside the page; a wide one keeps its size and scrolls on a small screen."""
    width, height = (round(inches * PIXELS) for inches in figure.get_size_inches())
    data = base64.b64encode(png(figure)).decode()
    below = f"<figcaption>{markup(caption)}</figcaption>" if caption else ""
    return Markup(
        f"<figure{_kind('wide' if wide else '')}>"
        f'<img src="data:image/png;base64,{data}" width="{width}" height="{height}" alt="{markup(alt)}">'
        f"{below}</figure>"
    )


def row(parts: Iterable[str]) -> Markup:
    """Put parts side by side where there is room, below each other where not."""
    inner = "\n".join(markup(part) for part in parts if part)
    return Markup(f'<div class="row">{inner}</div>') if inner else Markup("")


def facts(pairs: Iterable[tuple[str, str]]) -> Markup:
    """List names and values."""
    inner = "\n".join(f"<dt>{markup(name)}</dt><dd>{markup(value)}</dd>" for name, value in pairs if value)
    return Markup(f"<dl>{inner}</dl>") if inner else Markup("")


def preformatted(text: str) -> Markup:
    """Write text as it stands, every line and blank kept."""
    return Markup(f"<pre>{markup(text)}</pre>") if text else Markup("")


def _kind(name: str) -> str:
    return f' class="{name}"' if name else ""
