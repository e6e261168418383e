"""docs/equations.md names functions and tests that exist."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = sorted(
    set(re.findall(r"`((?:weft|tests)/[\w/]+\.py)(?::(\w+))?`", (ROOT / "docs/equations.md").read_text()))
)


@pytest.mark.parametrize(("path", "name"), NAMED)
def test_a_named_place_exists(path: str, name: str):
    text = (ROOT / path).read_text(encoding="utf-8")
    assert not name or re.search(rf"^(?:def|class) {name}\b", text, re.MULTILINE), f"{path} has no {name}"


def test_the_page_names_many():
    assert len(NAMED) > 40
