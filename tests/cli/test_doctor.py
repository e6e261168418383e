import json

import pytest
import torch
from program import weft


def test_doctor_says_what_is_there():
    result = weft("doctor")
    assert result.returncode == 0
    for word in ("python", torch.__version__, "cores", "gpu", "free here"):
        assert word in result.stdout


def test_doctor_speaks_json():
    found = json.loads(weft("doctor", "--json").stdout)
    assert found["torch"]["version"] == torch.__version__
    assert found["system"]["cores"] >= 1


def test_doctor_says_which_kernels_run_by_themselves(monkeypatch):
    monkeypatch.setenv("WEFT_KERNELS", "loss")
    kernels = json.loads(weft("doctor", "--json").stdout)["kernels on a gpu"]
    assert [name for name, words in kernels.items() if words == "taken by auto"] == ["loss"]
    monkeypatch.setenv("WEFT_KERNELS", "lost")
    result = weft("doctor")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr == "weft: WEFT_KERNELS names `lost`, no kernel. Did you mean `loss`?\n"


@pytest.fixture
def run(tmp_path):
    from weft.api.settings import parse_settings
    from weft.api.training import start

    path = tmp_path / "names.tsv"
    path.write_text("".join(f"{'ab'[i % 2]}{i}\t{'xy'[i % 2]}\n" for i in range(60)))
    settings = {
        "task": {"name": "classify"},
        "run": str(tmp_path / "run"),
        "data": {"train": str(path), "tokens": "char"},
        "model": {"family": "lstm", "width": 8, "layers": 1},
        "train": {"steps": 1},
    }
    return start(parse_settings(settings), quiet=True)[0].path


def test_doctor_checks_a_run(run):
    result = weft("doctor", str(run))
    assert (result.returncode, result.stderr) == (0, "")
    assert all(line.startswith("ok  ") for line in result.stdout.splitlines())
    assert "padding changes nothing" in result.stdout


def test_doctor_names_the_check_that_fails(run):
    weights = next(run.glob("checkpoints/step-*/model.safetensors"))
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    result = weft("doctor", str(run))
    assert result.returncode == 1
    assert result.stdout == "FAIL  checkpoint whole by its manifest\n"
    assert "fails 1 of 1 checks: checkpoint whole by its manifest (" in result.stderr
    assert json.loads(weft("doctor", str(run), "--json").stdout)[0]["passed"] is False
