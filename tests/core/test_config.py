import math
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.config import Word, convert, join, merge, nearest_key, option, parse, plain
from weft.core.errors import ConfigError


@dataclass(frozen=True)
class Inner:
    depth: int = option(1, "how deep", low=1)


@dataclass(frozen=True)
class Section:
    rate: float = option(0.5, "a rate", low=0, high=1)
    steps: int | None = option(None, "how many", low=1, high=10**9)
    name: str = option("adam", "which", choices=("adam", "sgd"))
    flag: bool = option(False, "yes or no")
    label: str = option("x", "any text")
    betas: tuple[float, ...] = option((0.9, 0.99), "two numbers", low=0, high=1)
    files: tuple[str, ...] = option((), "files")
    inner: Inner = option(Inner(), "a section inside")
    sizes: dict[str, int] = option(dict, "sizes by name")
    mixed: int | str = option("auto", "a number or a word")


def read(**values) -> Section:
    return parse(Section, values, "s")


def test_nothing_given_is_every_default():
    assert parse(Section, None, "s") == parse(Section, {}, "s") == Section()


def test_values_keep_their_types():
    got = read(rate=1, steps=3.0, label=7, betas=[0, 1], inner={"depth": 2}, sizes={"a": 1}, mixed=3)
    assert (got.rate, got.steps, got.label, got.betas) == (1.0, 3, "7", (0.0, 1.0))
    assert isinstance(got.rate, float)
    assert isinstance(got.steps, int)
    assert (got.inner.depth, got.sizes, got.mixed) == (2, {"a": 1}, 3)


def test_one_value_stands_for_a_list_of_one():
    assert read(files="a.tsv").files == ("a.tsv",)


@pytest.mark.parametrize(
    ("key", "word", "value"),
    [
        ("rate", "1e-3", 0.001),
        ("steps", "12", 12),
        ("steps", "null", None),
        ("steps", "none", None),
        ("steps", "", None),
        ("flag", "true", True),
        ("label", "no", "no"),
        ("label", "12", "12"),
        ("betas", "0.5,0.25", (0.5, 0.25)),
        ("betas", "[0.5, 0.25]", (0.5, 0.25)),
        ("files", "a.de,a.en", ("a.de", "a.en")),
        ("files", "", ()),
        ("mixed", "4", 4),
        ("mixed", "auto", "auto"),
        ("inner", "{depth: 3}", Inner(3)),
        ("sizes", "{a: 2}", {"a": 2}),
    ],
)
def test_a_word_means_what_its_key_wants(key, word, value):
    assert getattr(read(**{key: Word(word)}), key) == value


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"rat": 1}, r"There is no key `s.rat`. Did you mean `s.rate`\?"),
        ({"zzzzzzzz": 1}, r"There is no key `s.zzzzzzzz`. Known: s.betas, s.files, "),
        ({"rate": "fast"}, "`s.rate` must be a number, but is 'fast'."),
        ({"rate": True}, "`s.rate` must be a number, but is True."),
        ({"rate": -0.1}, "`s.rate` must be at least 0, but is -0.1."),
        ({"rate": 2}, "`s.rate` must be at most 1, but is 2.0."),
        ({"rate": math.nan}, "`s.rate` must be a number, but is nan."),
        ({"rate": None}, "`s.rate` must be a number, but is None."),
        ({"rate": 10**400}, "`s.rate` must be at most 1, but is inf."),
        ({"steps": 1.5}, "`s.steps` must be a whole number, but is 1.5."),
        ({"steps": 0}, "`s.steps` must be at least 1, but is 0."),
        ({"steps": math.inf}, "`s.steps` must be a whole number, but is inf."),
        ({"steps": True}, "`s.steps` must be a whole number, but is True."),
        ({"name": "adm"}, r"`s.name` cannot be `adm`. Did you mean `adam`\?"),
        ({"name": None}, "`s.name` must be text, but is None."),
        ({"flag": "yes"}, "`s.flag` must be true or false, but is 'yes'."),
        ({"flag": 1}, "`s.flag` must be true or false, but is 1."),
        ({"flag": Word("no")}, "`s.flag` must be true or false, but is 'no'."),
        ({"label": True}, "`s.label` must be text, but is True."),
        ({"betas": [0.5, 3]}, "`s.betas` must be at most 1, but is 3.0."),
        ({"betas": ["a"]}, "`s.betas` must be a number, but is 'a'."),
        ({"inner": 3}, "`s.inner` must be a mapping of keys to values, but is 3."),
        ({"inner": {"dept": 3}}, r"There is no key `s.inner.dept`. Did you mean `s.inner.depth`\?"),
        ({"inner": {"depth": 0}}, "`s.inner.depth` must be at least 1, but is 0."),
        ({"sizes": 3}, "`s.sizes` must be a mapping, but is 3."),
        ({"sizes": {"a": "b"}}, "`s.sizes.a` must be a whole number, but is 'b'."),
        ({"mixed": [1]}, r"`s.mixed` must be a whole number, but is \[1\]."),
        ({"rate": Word("[1")}, r"the value '\[1' is not valid YAML: "),
    ],
)
def test_errors_say_the_rule_the_value_and_the_way_out(values, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse(Section, values, "s")
    assert "\n" not in str(caught.value)


def test_a_section_is_a_mapping():
    with pytest.raises(ConfigError, match=r"`s` must be a mapping of keys to values, but is \[1\]."):
        parse(Section, [1], "s")


def test_a_union_without_none_refuses_none():
    with pytest.raises(ConfigError, match=r"`s\.mixed` must be a whole number, but is None\."):
        read(mixed=None)


def test_keys_are_named_by_where_they_stand():
    assert (join("train", "lr"), join("", "lr")) == ("train.lr", "lr")
    assert nearest_key("", "sead", ["seed", "run"]) == " Did you mean `seed`?"


def test_anything_goes_where_anything_is_asked():
    assert convert(object, 3, "x") == 3


def test_plain_writes_every_default_out():
    assert plain(Section()) == {
        "rate": 0.5,
        "steps": None,
        "name": "adam",
        "flag": False,
        "label": "x",
        "betas": [0.9, 0.99],
        "files": [],
        "inner": {"depth": 1},
        "sizes": {},
        "mixed": "auto",
    }


def test_plain_leaves_no_words():
    assert type(plain({"a": (Word("b"),)})["a"][0]) is str


@given(
    st.fixed_dictionaries(
        {},
        optional={
            "rate": st.floats(0, 1),
            "steps": st.none() | st.integers(1, 10**9),
            "name": st.sampled_from(["adam", "sgd"]),
            "flag": st.booleans(),
            "label": st.text(),
            "betas": st.lists(st.floats(0, 1)),
            "files": st.lists(st.text()),
            "inner": st.fixed_dictionaries({"depth": st.integers(1, 99)}),
            "sizes": st.dictionaries(st.text(), st.integers()),
        },
    )
)
def test_what_is_written_is_read_again(values):
    section = parse(Section, values, "s")
    assert parse(Section, plain(section), "s") == section


def test_merge_lays_keys_over_keys():
    below = {"a": {"x": 1, "y": 2}, "b": [1, 2], "c": 3}
    assert merge(below, {"a": {"y": 5}, "b": [9], "d": 4}) == {
        "a": {"x": 1, "y": 5},
        "b": [9],
        "c": 3,
        "d": 4,
    }
    assert below["a"] == {"x": 1, "y": 2}
