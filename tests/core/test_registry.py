import pytest

from weft.core.errors import ConfigError
from weft.core.registry import Registry


def make() -> Registry[int]:
    registry: Registry[int] = Registry("family")
    registry.register("lstm")(1)
    registry.register("gru")(2)
    return registry


def test_names_are_found_in_the_order_of_registration():
    registry = make()
    assert (registry["lstm"], list(registry), "gru" in registry, "tcn" in registry) == (
        1,
        ["lstm", "gru"],
        True,
        False,
    )


def test_a_decorator_gives_back_what_it_files():
    registry: Registry[type] = Registry("task")

    @registry.register("t")
    class T: ...

    assert registry["t"] is T


def test_an_unknown_name_gets_the_nearest():
    with pytest.raises(ConfigError, match=r"There is no family `lstn`. Did you mean `lstm`\?"):
        make()["lstn"]


def test_a_far_name_gets_the_list():
    with pytest.raises(ConfigError, match=r"There is no family `qqqqq`. Known: gru, lstm."):
        make()["qqqqq"]


def test_a_name_is_given_once():
    file = make().register("gru")
    with pytest.raises(ValueError, match="family `gru` is registered twice"):
        file(3)
