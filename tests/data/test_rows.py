"""The options of reading, as a recipe or a command line gives them."""

import pytest

from weft.core.config import Word, parse
from weft.core.errors import ConfigError
from weft.core.text import load_yaml
from weft.data.rows import ReadOptions


def test_a_recipe_gives_options():
    text = "{format: csv, columns: [sequence, 2], header: true, missing: [NA, NaN], max_line: 100}"
    found = parse(ReadOptions, load_yaml(text, "recipe"), "data")
    assert (found.format, found.columns, found.header, found.max_line) == (
        "csv",
        ("sequence", "2"),
        True,
        100,
    )
    assert found.missing == ("NA", "NaN")


def test_a_command_line_gives_options():
    words = {
        "columns": Word("b,a"),
        "header": Word("false"),
        "delimiter": Word("tab"),
        "unique": Word("true"),
    }
    found = parse(ReadOptions, words, "data")
    assert (found.columns, found.header, found.delimiter, found.unique) == (("b", "a"), False, "tab", True)
    assert parse(ReadOptions, {"header": Word("auto")}, "data").header == "auto"


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"format": "cvs"}, r"`data\.format` cannot be `cvs`\. Did you mean `csv`"),
        ({"header": "maybe"}, r"`data\.header` cannot be `maybe`"),
        ({"max_line": 0}, r"`data\.max_line` must be at least 1, but is 0"),
        ({"colums": "a"}, r"no key `data\.colums`\. Did you mean `data\.columns`"),
        ({"part": "dev"}, r"`data\.part` cannot be `dev`"),
    ],
)
def test_wrong_options_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        parse(ReadOptions, values, "data")
