import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.core.errors import ConfigError
from weft.core.text import dump_yaml, load_yaml


def read(text: str):
    return load_yaml(text, "c.yaml")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("false", False),
        ("True", "True"),
        ("1e-3", 0.001),
        ("1E5", 1e5),
        (".5", 0.5),
        ("5.", 5.0),
        ("-2.5e+3", -2500.0),
        (".inf", math.inf),
        ("-.inf", -math.inf),
        ("12", 12),
        ("-0", 0),
        ("012", "012"),
        ("0x1F", "0x1F"),
        ("1_000", "1_000"),
        ("12:30:45", "12:30:45"),
        ("2020-01-02", "2020-01-02"),
        ("5M", "5M"),
        ("null", None),
        ("~", None),
        ("", None),
        ("'1'", "1"),
        ("[a, 1, 2.0]", ["a", 1, 2.0]),
    ],
)
def test_values_read_as_people_mean_them(text, value):
    got = read(text)
    assert got == value
    assert type(got) is type(value)


def test_nan_is_a_number():
    assert math.isnan(read(".nan"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1", "c.yaml is not valid YAML: .*line 1"),
        ("a: 1\n b: 2", "c.yaml is not valid YAML: "),
        ("a: 1\nb:\n  c: 1\n  c: 2\n", "Key `c` stands twice.*line 4.*Keep one of them."),
        ("a: !!python/object/apply:os.system [ls]", "c.yaml is not valid YAML: could not determine"),
        ("a: \x00", "c.yaml is not valid YAML: "),
        ("--- 1\n--- 2", "c.yaml is not valid YAML: expected a single document"),
        ("[a]: 1", "c.yaml is not valid YAML: "),
        ("1" * 5000, "c.yaml is not valid YAML: "),
        ("[" * 5000, "c.yaml is not valid YAML: "),
    ],
)
def test_errors_are_one_line(text, message):
    with pytest.raises(ConfigError, match=message) as caught:
        read(text)
    assert "\n" not in str(caught.value)


def test_keys_stay_in_order():
    assert dump_yaml({"b": 1, "a": {"z": 2, "y": [1, 2]}}) == "b: 1\na:\n  z: 2\n  y:\n  - 1\n  - 2\n"


def test_letters_stay_letters():
    assert dump_yaml({"a": "größer 中"}) == "a: größer 中\n"


SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text()
    | st.sampled_from(["no", "1e5", "-3E2", ".5", "5.", "012", "null", "true", "1:30", "=", "<<", "~", ""])
)  # fmt: skip


@settings(max_examples=60)
@given(st.dictionaries(st.text(), st.recursive(SCALARS, lambda inner: st.lists(inner), max_leaves=5)))
def test_what_is_written_is_read_again(values):
    assert read(dump_yaml(values)) == values
