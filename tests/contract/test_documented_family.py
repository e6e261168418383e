"""The family that docs/add_a_family.md writes down keeps the contract."""

import re
import sys
import types
from pathlib import Path

import pytest

from weft.nn.families import families
from weft.testing import Case, checks_for

PAGE = Path(__file__).resolve().parents[2] / "docs" / "add_a_family.md"
CASES = [
    Case("sru"),
    Case("sru", "one-way"),
    Case("sru", "both", options={"residual": True}),
    Case("sru", attention="additive"),
    Case("sru", attention="multihead", options={"feed": "output"}),
]
PAIRS = [(case, check) for case in CASES for check in checks_for(case)]


@pytest.fixture(scope="module", autouse=True)
def documented_family():
    """Run the page's code as a module of its own, and take the family out of the registry afterwards."""
    (code,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    module = types.ModuleType("documented_family")
    sys.modules[module.__name__] = module
    exec(compile(code, str(PAGE), "exec"), module.__dict__)
    yield
    del families._entries["sru"], sys.modules[module.__name__]


@pytest.mark.parametrize(("case", "check"), PAIRS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_contract(case, check):
    check(case)
