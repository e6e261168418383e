"""docs/add_a_task.md calls every method of a task with the arguments it gets."""

import inspect
import re
from pathlib import Path

import pytest

from weft.tasks import Task

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add_a_task.md"
METHODS = re.findall(r"^\| `(\w+)\((.*?)\)`", PAGE.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(("name", "written"), METHODS)
def test_a_method_takes_as_many_arguments_as_the_page_says(name, written):
    arguments = [name for name in inspect.signature(getattr(Task, name)).parameters if name != "self"]
    assert len(written.split(", ")) == len(arguments)


def test_the_page_has_every_method():
    own = {
        name
        for name, value in vars(Task).items()
        if inspect.isroutine(value) or isinstance(value, staticmethod)
    }
    assert {name for name in own if not name.startswith("_")} <= {name for name, _ in METHODS}
