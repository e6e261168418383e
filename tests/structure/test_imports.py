"""A room imports only from rooms below it, no file waits for itself, and the tensor rooms need little."""

import subprocess
import sys

import pytest
from tree import LEVELS, ROOT, Module, imported, modules

LAZY_UPWARD = {
    # (importing file, imported room): why
    ("weft/__init__.py", "nn"): "public names of `import weft`, loaded when first used",
    ("weft/__init__.py", "ops"): "public names of `import weft`, loaded when first used",
    ("weft/__init__.py", "api"): "public names of `import weft`, loaded when first used",
}


USERS_OF_TESTING = {"cli"}  # `weft doctor RUN`


def room_of(name: str) -> str | None:
    """Return the room a dotted name lies in; None outside the rooms."""
    parts = name.split(".")
    return parts[1] if parts[0] == "weft" and len(parts) > 1 and parts[1] != "__version__" else None


def wrong_imports(module: Module) -> list[str]:
    wrong = []
    for name, line, at_once in imported(module):
        room = room_of(name)
        if room is None or room == module.room:
            continue
        if (module.place, room) in LAZY_UPWARD and not at_once:
            continue
        if room == "testing" and module.room in USERS_OF_TESTING:
            continue
        if LEVELS[room] >= LEVELS.get(module.room, 0):
            wrong.append(f"{module.place}:{line} ({module.room}) imports {name}")
    return wrong


def test_every_room_has_a_level():
    rooms = {module.room for module in modules()} - {""}
    assert rooms <= set(LEVELS)


def test_no_import_goes_up_or_sideways():
    assert [line for module in modules() for line in wrong_imports(module)] == []


def test_a_wrong_import_would_be_seen():
    import ast

    source = "def f():\n    from ..nn import lstm\n"
    module = Module("weft.data.fake", ROOT / "weft/data/fake.py", ast.parse(source), ())
    assert wrong_imports(module) == ["weft/data/fake.py:2 (data) imports weft.nn.lstm"]


def test_no_file_imports_itself_through_others():
    names = {module.name for module in modules()}
    graph = {
        module.name: {owner(name, names) for name, _, at_once in imported(module) if at_once}
        for module in modules()
    }
    assert cycle({name: targets - {name, None} for name, targets in graph.items()}) == []


def owner(name: str, names: set[str]) -> str | None:
    """Return the module a dotted name belongs to: itself, or the module that defines it."""
    return name if name in names else next(iter({name.rpartition(".")[0]} & names), None)


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return what is left after taking away, again and again, whatever imports nothing that is left."""
    left = dict(graph)
    while ready := [name for name, targets in left.items() if not targets & set(left)]:
        for name in ready:
            del left[name]
    return sorted(left)


def test_a_cycle_would_be_seen():
    assert cycle({"a": {"b"}, "b": {"c"}, "c": {"b"}}) == ["a", "b", "c"]
    assert cycle({"a": {"b"}, "b": {"c"}, "c": set()}) == []


ALLOWED = {"torch", "numpy", "jaxtyping"}
WITHOUT = """
import importlib, sys

class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked!r}:
            raise ModuleNotFoundError(f"{{name}} is blocked", name=name)

sys.meta_path.insert(0, Absent())
for name in {names!r}:
    importlib.import_module(name)
"""
OTHERS = {
    "safetensors", "tokenizers", "sacrebleu", "yaml", "typer", "rich", "matplotlib", "PIL", "tensorboard",
    "scipy", "pandas", "pydantic", "beartype", "hypothesis", "pytest", "rouge_score", "lxml", "triton",
}  # fmt: skip


def is_triton_room(module: Module) -> bool:
    """Tell whether a file holds kernels in Triton: it needs triton at once, so it is imported when used."""
    at_once = {name for name, _, now in imported(module) if now}
    return module.name.startswith("weft.ops.kernels.") and "triton" in at_once


def test_rooms_of_triton_are_imported_when_used():
    rooms = {module.name for module in modules() if is_triton_room(module)}
    names = {module.name for module in modules()}
    assert rooms
    at_once = {
        (module.place, owner(name, names))
        for module in modules()
        if not is_triton_room(module)
        for name, _, now in imported(module)
        if now
    }
    assert [pair for pair in at_once if pair[1] in rooms] == []


@pytest.mark.parametrize("room", ["core", "ops", "nn"])
def test_the_tensor_rooms_need_torch_numpy_and_jaxtyping_alone(room):
    needs_yaml = {"weft.core.text"}  # only what reads configuration files imports it
    names = [
        module.name
        for module in modules()
        if module.room == room and module.name not in needs_yaml and not is_triton_room(module)
    ]
    code = WITHOUT.format(blocked=OTHERS, names=names)
    result = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_the_tensor_rooms_name_no_other_package():
    known = ALLOWED | {"weft", "__future__"} | set(sys.stdlib_module_names)
    optional = {"triton", "yaml"}  # in one file each, loaded when used
    strangers = [
        f"{module.place}:{line} {name}"
        for module in modules()
        if module.room in ("core", "ops", "nn")
        for name, line, _ in imported(module)
        if name.partition(".")[0] not in known | optional
    ]
    assert strangers == []
