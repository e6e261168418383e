"""Every name a room promises exists, and every file says what it is."""

import ast
import importlib

import pytest
from tree import PACKAGE, modules

ROOMS = [module for module in modules() if module.path.name == "__init__.py"]


@pytest.mark.parametrize("name", [module.name for module in ROOMS])
def test_exported_names_exist(name):
    room = importlib.import_module(name)
    assert [item for item in getattr(room, "__all__", []) if not hasattr(room, item)] == []


@pytest.mark.parametrize("name", [module.name for module in ROOMS])
def test_no_name_is_exported_twice(name):
    names = getattr(importlib.import_module(name), "__all__", [])
    assert len(names) == len(set(names))


def test_weft_shows_what_it_promises_and_no_more():
    weft = importlib.import_module("weft")
    assert dir(weft) == sorted(weft.__all__)


def test_every_file_has_a_docstring():
    assert [module.place for module in modules() if not ast.get_docstring(module.tree)] == []


def test_every_folder_of_code_is_a_package():
    folders = {module.path.parent for module in modules()}
    assert [str(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
    assert (PACKAGE / "__init__.py").exists()


def test_no_drawer_for_odds_and_ends():
    drawers = {"utils", "util", "helpers", "misc", "common"}
    assert [module.place for module in modules() if module.path.stem in drawers] == []
