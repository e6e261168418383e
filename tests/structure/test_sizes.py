"""One screen per function, and files that can be read in one sitting."""

import ast
import statistics

from tree import modules

MEDIAN, NINETIETH, LONGEST, FILE = 8, 25, 45, 400

LONGER: dict[str, str] = {
    # "weft/room/file.py:function": why it is longer than 45 lines
}


def code_lines(lines: tuple[str, ...], first: int, last: int) -> int:
    """Count lines first..last (from 1, inclusive) that are neither empty nor a comment."""
    stripped = (line.strip() for line in lines[first - 1 : last])
    return sum(bool(line) and not line.startswith("#") for line in stripped)


def body_lines(function: ast.FunctionDef | ast.AsyncFunctionDef, lines: tuple[str, ...]) -> int:
    """Count the code lines of a function's body, without its docstring."""
    has_docstring = ast.get_docstring(function) is not None
    body = function.body[1:] if has_docstring else function.body
    return code_lines(lines, body[0].lineno, body[-1].end_lineno or 0) if body else 0


def sizes() -> dict[str, int]:
    """Return the size of every function of weft by place and name."""
    return {
        f"{module.place}:{node.name}:{node.lineno}": body_lines(node, module.lines)
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    }


def test_functions_are_short():
    counts = sorted(sizes().values())
    assert statistics.median(counts) <= MEDIAN
    assert counts[int(0.9 * (len(counts) - 1))] <= NINETIETH


def test_no_function_is_longer_than_a_screen():
    long = {place: size for place, size in sizes().items() if size > LONGEST}
    assert {place: size for place, size in long.items() if place.rpartition(":")[0] not in LONGER} == {}
    assert {place.rpartition(":")[0] for place in long} == set(LONGER), "a reason nobody needs any more"


def test_no_file_is_too_long():
    counts = {module.place: code_lines(module.lines, 1, len(module.lines)) for module in modules()}
    assert {place: count for place, count in counts.items() if count > FILE} == {}


def test_only_code_is_counted():
    source = 'def f(x):\n    """Say.\n\n    More."""\n    # why\n    y = x\n\n    return y\n'
    function = ast.parse(source).body[0]
    assert isinstance(function, ast.FunctionDef)
    assert body_lines(function, tuple(source.splitlines())) == 2
