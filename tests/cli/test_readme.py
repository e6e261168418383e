"""README's short commands work as written."""

import re
import shlex
from pathlib import Path

import pytest
from tiny_runs import weft_inside
from tree import ROOT

README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(kind: str) -> list[str]:
    return re.findall(rf"```{kind}\n(.*?)```", README, re.DOTALL)


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stand in a folder that holds the files README speaks of."""
    numbers = ["ein", "zwei", "drei", "vier", "fünf", "sechs", "sieben", "acht"]
    rows = [f"{a} hund {b} läuft\t{b} dog {a} runs" for a in numbers for b in numbers]
    (tmp_path / "pairs.tsv").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (tmp_path / "more.tsv").write_text("\n".join(rows[:9]) + "\n", encoding="utf-8")
    (tmp_path / "in.txt").write_text("ein hund läuft\n\nzwei hund läuft\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_commands_for_ones_own_data(desk: Path):
    (block,) = [text for text in blocks("sh") if "weft data check" in text]
    lines = block.strip().splitlines()
    assert len(lines) == 5
    for line in lines:
        words = shlex.split(line)
        stdin, wanted = b"", None
        if "<" in words:
            stdin, wanted = Path(words[words.index("<") + 1]).read_bytes(), words[words.index(">") + 1]
            words = words[: words.index("<")]
        ended = weft_inside(*words[1:], stdin=stdin)
        assert ended.code == 0, f"{line}\n{ended.err}"
        if wanted is not None:
            assert ended.out.count("\n") == stdin.count(b"\n")
            assert ended.out.splitlines()[1] == ""
    assert (desk / "runs/first/report.html").exists()


def test_the_lines_of_python(desk: Path):
    import torch

    from weft.ops import ScoreParams

    (code,) = blocks("python")
    q, k, v = (torch.randn(2, size, 4) for size in (3, 5, 5))
    params = ScoreParams(torch.randn(6, 4), torch.randn(6, 4), torch.randn(6))
    names = {"q": q, "k": k, "v": v, "p": params, "n": torch.tensor([5, 2])}
    code = code.replace('budget="300K")', 'budget="300K", train={"steps": 3})')
    exec(compile(code, "README.md", "exec"), names)
    assert names["y"].shape == (2, 3, 4)


def test_every_page_linked_is_there():
    links = re.findall(r"\]\(([\w/.]+)\)", README)
    assert links
    assert all((ROOT / link).exists() for link in links)
