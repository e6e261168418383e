"""The source tree as the structure tests see it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "weft"

LEVELS = {
    "core": 1,
    "ops": 2,
    "data": 2,
    "metrics": 2,
    "nn": 3,
    "models": 4,
    "decoding": 4,
    "tasks": 5,
    "runs": 6,
    "evaluation": 6,
    "inspection": 6,
    "training": 7,
    "reporting": 7,
    "comparison": 8,
    "bench": 8,
    "explain": 8,
    "serving": 8,
    "studio": 8,
    "export": 8,
    "api": 9,
    "cli": 10,
    "__main__": 11,
    "testing": 11,  # may import everything; only tests and bench import it
}


@dataclass(frozen=True)
class Module:
    """One file of weft: its dotted name, its tree, its lines."""

    name: str
    path: Path
    tree: ast.Module
    lines: tuple[str, ...]

    @property
    def room(self) -> str:
        """The room's name; empty for weft/__init__.py."""
        return [*self.name.split("."), ""][1]

    @property
    def place(self) -> str:
        return str(self.path.relative_to(ROOT))


@cache
def modules() -> tuple[Module, ...]:
    """Return every Python file of weft, parsed."""
    return tuple(_read(path) for path in sorted(PACKAGE.rglob("*.py")))


def _read(path: Path) -> Module:
    parts = path.relative_to(ROOT).with_suffix("").parts
    name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
    text = path.read_text(encoding="utf-8")
    return Module(name, path, ast.parse(text), tuple(text.splitlines()))


def imported(module: Module) -> list[tuple[str, int, bool]]:
    """Return (dotted name, line, at import time?) of everything a module imports, however deep inside."""
    lazy = {id(node) for node in _inside_functions(module.tree)} | {id(n) for n in _for_types(module.tree)}
    found = []
    for node in ast.walk(module.tree):
        for name in _names(node, module):
            found.append((name, node.lineno, id(node) not in lazy))
    return found


def _names(node: ast.AST, module: Module) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        base = _base(node, module)
        return [f"{base}.{alias.name}" for alias in node.names]
    return []


def _base(node: ast.ImportFrom, module: Module) -> str:
    if not node.level:
        return node.module or ""
    package = module.name.split(".") if module.path.name == "__init__.py" else module.name.split(".")[:-1]
    parents = package[: len(package) - node.level + 1]
    return ".".join([*parents, *([node.module] if node.module else [])])


def _inside_functions(tree: ast.AST) -> list[ast.AST]:
    functions = [n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)]
    return [inner for function in functions for inner in ast.walk(function)]


def _for_types(tree: ast.AST) -> list[ast.AST]:
    """Return what stands under `if TYPE_CHECKING:`."""
    blocks = [n for n in ast.walk(tree) if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)]
    return [inner for block in blocks for inner in ast.walk(block)]
