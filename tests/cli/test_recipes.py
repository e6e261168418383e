import json

import pytest
from tiny_runs import weft_inside

from weft.cli import recipes
from weft.cli.train import read_settings
from weft.core.errors import ConfigError


def test_every_shipped_recipe_is_listed_and_can_be_read():
    found = {entry["name"] for entry in json.loads(weft_inside("recipes", "--json").out)}
    assert found == set(recipes.shipped()) != set()
    for name in found:
        assert name.partition("/")[0] == read_settings([name]).task


def test_a_recipe_says_what_it_is_for():
    listed = weft_inside("recipes").out
    assert "translate/dates" in listed
    assert recipes.lead(recipes.find("translate/dates")) in listed


def test_a_recipe_is_shown_as_it_is():
    name = "translate/dates"
    assert weft_inside("recipes", "show", name).out == recipes.find(name).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (b"- a\n- b\n", "A recipe must be keys and values, but "),
        (b"a: [\n", "is not valid YAML"),
        (b"\xff", "is not UTF-8"),
        (b"", "A recipe must be keys and values"),
    ],
)
def test_a_broken_recipe_is_refused(tmp_path, content, line):
    path = tmp_path / "mine.yaml"
    path.write_bytes(content)
    with pytest.raises(ConfigError, match=line):
        recipes.load(str(path))


def test_a_file_nearly_named_is_found(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.yaml").write_text("task: translate\n")
    with pytest.raises(ConfigError, match=r"no recipe file `mien\.yaml`. Did you mean `mine\.yaml`"):
        recipes.find("mien.yaml")


def test_a_stray_word_is_refused():
    ended = weft_inside("recipes", "translate/dates")
    assert ended.code == 2
    assert "Say: weft recipes show translate/dates" in ended.err
