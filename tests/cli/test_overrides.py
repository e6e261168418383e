import pytest

from weft.cli.overrides import parse_overrides, split_words
from weft.core.config import Word
from weft.core.errors import ConfigError


def test_words_are_nested_by_their_dots():
    assert parse_overrides(["a.b.c=1", "a.d=x=y", "e="]) == {"a": {"b": {"c": "1"}, "d": "x=y"}, "e": ""}


def test_task_names_its_section():
    assert parse_overrides(["task=tag", "task.input=x"]) == {"task": {"name": "tag", "input": "x"}}


def test_values_are_words_whose_type_comes_later():
    assert isinstance(parse_overrides(["a=1"])["a"], Word)


def test_paths_stand_apart_from_settings():
    paths, settings = split_words(["my file.tsv", "n=3", "./a=b.tsv", "dir/c=d.tsv", "-"])
    assert paths == ["my file.tsv", "./a=b.tsv", "dir/c=d.tsv", "-"]
    assert settings == {"n": "3"}


def test_a_value_may_hold_line_ends():
    assert parse_overrides(["a=x\ny"]) == {"a": "x\ny"}


def test_a_word_that_is_no_setting_is_refused():
    with pytest.raises(ConfigError, match=r"^`train` is not a setting. Write it as key=value.$"):
        parse_overrides(["a=1", "train"])


def test_a_key_given_twice_is_refused():
    with pytest.raises(ConfigError, match=r"^`a.b` is given twice. Keep one of them.$"):
        parse_overrides(["a.b=1", "a.b=2"])


@pytest.mark.parametrize("words", [["a=1", "a.b=2"], ["a.b=2", "a=1"]])
def test_a_key_is_a_value_or_a_section(words):
    with pytest.raises(ConfigError, match=r"`a` is given (both as a value and as a section|twice)"):
        parse_overrides(words)
