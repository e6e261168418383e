from dataclasses import dataclass

from weft.cli.config_docs import PAGE, page, render
from weft.core.config import option


@dataclass(frozen=True)
class Inner:
    """How the source is read."""

    rows: int = option(3, "rows a batch", low=1, high=16777216)


@dataclass(frozen=True)
class Outer:
    """How it runs.

    More.
    """

    kind: str = option("a", "which kind", choices=("a", "b"))
    rate: float | None = option(None, "the rate; a|b", low=0.0, high=0.95)
    names: tuple[str, ...] = option(("x", "y"), "the names.")
    fast: bool = option(True, "whether it hurries")
    inner: Inner = option(Inner, "how it reads")


EXPECTED = """\
## `outer`

How it runs.

| key | type | default | meaning |
|---|---|---|---|
| `outer.kind` | text | `a` | which kind. One of `a`, `b`. |
| `outer.rate` | number or none | none | the rate; a\\|b. From 0 to 0.95. |
| `outer.names` | list of text | `x,y` | the names. |
| `outer.fast` | true or false | `true` | whether it hurries. |

## `outer.inner`

How the source is read.

| key | type | default | meaning |
|---|---|---|---|
| `outer.inner.rows` | whole number | `3` | rows a batch. From 1 to 16,777,216. |
"""


def test_a_section_becomes_tables():
    assert render([("outer", Outer)]).partition("## ")[2] == EXPECTED.removeprefix("## ")


def test_a_section_without_a_name_stands_at_the_top():
    made = render([("", Inner)])
    assert "## Top level" in made
    assert "| `rows` |" in made


def test_words_after_a_name_show_in_its_title_alone():
    made = render([("model (family lstm)", Inner)])
    assert "## `model` (family lstm)" in made
    assert "| `model.rows` |" in made


def test_the_committed_page_is_current():
    assert PAGE.read_text(encoding="utf-8") == page(), "run `make docs`"
