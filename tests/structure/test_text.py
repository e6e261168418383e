"""What no file of the project may hold."""

import ast
import re

import pytest
from tree import ROOT, Module, modules

FOLDERS = ("weft", "tests", "docs", "scripts", "benchmarks", "results", "examples", ".ci")
ENDINGS = {
    ".py",
    ".md",
    ".toml",
    ".lock",
    ".yaml",
    ".yml",
    ".json",
    ".txt",
    ".sh",
    ".cfg",
    ".cpp",
    ".cu",
    ".html",
    "",
}

FORBIDDEN = {
    "a machine's path": r"/(work|tmp|root|opt|farm)" + "/",
    "a registry's host": r"pypi\.org|python"
    + r"hosted\.org|download\.py"
    + r"torch\.org|npm"
    + r"js\.(org|com)",
    "an open end": r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X)\b|raise NotImplemented" + r"Error",
    "talk about the making": r"sub" + r"agent|before" + r"-stop",
}


def texts() -> list[tuple[str, str]]:
    """Return (place, text) of every text file of the project."""
    folders = [path for name in FOLDERS for path in (ROOT / name).rglob("*")]
    files = [p for p in [*ROOT.iterdir(), *folders] if p.is_file() and p.suffix in ENDINGS]
    kept = [p for p in files if "__pycache__" not in p.parts]
    return [(str(p.relative_to(ROOT)), p.read_text(encoding="utf-8", errors="replace")) for p in sorted(kept)]


@pytest.mark.parametrize("what", FORBIDDEN)
def test_no_text_holds(what):
    pattern = re.compile(FORBIDDEN[what])
    found = [
        f"{place}:{number}: {line.strip()[:80]}"
        for place, text in texts()
        for number, line in enumerate(text.splitlines(), 1)
        if pattern.search(line)
    ]
    assert found == []


def test_every_silenced_check_says_why():
    silence = re.compile(
        r"#\s*(?:noqa|type:\s*ignore|pyright:\s*ignore)(?::\s*[A-Z0-9, ]+)?(?:\[[\w, -]*\])?(.*)"
    )
    bare = [
        f"{place}:{number}"
        for place, text in texts()
        if place.endswith(".py") and not place.endswith("test_text.py")
        for number, line in enumerate(text.splitlines(), 1)
        if (match := silence.search(line)) and not re.search(r"[a-z]{3}", match[1])
    ]
    assert bare == []


def test_only_absent_data_skips_a_test():
    skipping = re.compile(r"pytest\.(mark\.)?(skip|xfail|importor" + r"skip)")
    places = {place for place, text in texts() if place.endswith(".py") and skipping.search(text)}
    assert places - {"tests/structure/test_text.py"} <= {"tests/conftest.py"}


UNSAFE_MODULES = {"pickle", "cPickle", "dill", "cloudpickle", "shelve", "marshal", "joblib"}
UNSAFE_CALLS = {"eval", "exec", "compile", "__import__", "torch.load", "torch.save", "yaml.unsafe_load"}


def unsafe(module: Module) -> list[str]:
    """Return the places where a file could run what somebody else's file says."""
    found = []
    for node in ast.walk(module.tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.partition(".")[0] in UNSAFE_MODULES]
        elif isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] in UNSAFE_MODULES:
            names = [node.module or ""]
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in UNSAFE_CALLS:
            names = [ast.unparse(node.func)]
        elif (
            isinstance(node, ast.keyword)
            and node.arg == "allow_pickle"
            and ast.unparse(node.value) != "False"
        ):
            names = ["allow_pickle"]
        found += [f"{module.place}:{getattr(node, 'lineno', 0)} {name}" for name in names]
    return found


def test_no_file_can_run_what_another_file_says():
    assert [line for module in modules() for line in unsafe(module)] == []


def test_unsafe_reading_would_be_seen():
    source = "import pickle\nx = torch.load(p)\ny = np.load(p, allow_pickle=True)\nmodel.eval()\neval('1')\n"
    module = Module("weft.fake", ROOT / "weft/fake.py", ast.parse(source), ())
    assert [line.split()[1] for line in sorted(unsafe(module))] == [
        "pickle",
        "torch.load",
        "allow_pickle",
        "eval",
    ]
