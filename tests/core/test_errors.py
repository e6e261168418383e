import pytest

from weft.core import errors
from weft.core.errors import nearest


@pytest.mark.parametrize(
    ("kind", "code"),
    [("WeftError", 1), ("ConfigError", 2), ("DataError", 2), ("ArtefactError", 3), ("ResourceError", 4)],
)
def test_each_kind_has_its_exit_code(kind, code):
    assert getattr(errors, kind)("message").exit_code == code


def test_a_signal_gives_128_and_its_number():
    assert errors.Interrupted("stopped", 2).exit_code == errors.EXIT_CODES["interrupted"]
    assert errors.Interrupted("stopped", 15).exit_code == errors.EXIT_CODES["terminated"]


def test_nearest_names_one_or_all_or_nothing():
    assert nearest("lern", ["learn", "stop"]) == " Did you mean `learn`?"
    assert nearest("zzz", ["b", "a"]) == " Known: a, b."
    assert nearest("zzz", []) == ""
