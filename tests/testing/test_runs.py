import contextlib
import json
from functools import partial

import pytest
import torch

from weft.api.run import open_run
from weft.api.settings import parse_settings
from weft.api.training import start
from weft.testing import check_run
from weft.testing.runs import check_padding, check_reload, checks_for_model, find, make_subject

LETTERS = "abcd"


def text(number):
    return "".join(LETTERS[number // 4**i % 4] for i in range(5))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def trained(folder, task, family):
    """Return the folder of a run that was trained for two steps."""
    path = folder / f"{task}.tsv"
    answers = {"translate": lambda i: text(i)[::-1], "classify": lambda i: "xy"[i % 2], "regress": str}
    lines = [f"{text(i)}\t{answers[task](i)}" if task in answers else text(i) for i in range(80)]
    path.write_text("\n".join(lines) + "\n")
    settings = {
        "task": {"name": task},
        "run": str(folder / f"{task}-{family}"),
        "threads": 1,
        "data": {"train": str(path), "tokens": "char", "format": "tsv" if task in answers else "text"},
        "model": {"family": family, "width": 8, "layers": 1},
        "train": {"steps": 2},
    }
    with contextlib.suppress(FileExistsError):
        return start(parse_settings(settings), quiet=True)[0].path


@pytest.fixture(scope="module")
def run(folder):
    return trained(folder, "translate", "lstm")


@pytest.mark.parametrize("family", ["gru", "tcn", "transformer"])
@pytest.mark.parametrize("task", ["translate", "classify", "regress", "language"])
def test_a_sound_run_passes(folder, task, family):
    findings = list(check_run(trained(folder, task, family)))
    assert [(f.check, f.problem) for f in findings if not f.passed] == []
    assert ("step = forward" in {f.check for f in findings}) == (task in ("translate", "language"))
    assert len(findings) >= 7


def test_a_damaged_checkpoint_is_found_first(folder, tmp_path):
    import shutil

    path = tmp_path / "run"
    shutil.copytree(trained(folder, "classify", "lstm"), path, symlinks=True)
    weights = next(path.glob("checkpoints/step-*/model.safetensors"))
    damaged = bytearray(weights.read_bytes())
    damaged[-1] ^= 1
    weights.write_bytes(damaged)
    (finding,) = check_run(path)
    assert not finding.passed
    assert "model.safetensors is damaged" in finding.problem


def problems(subject):
    """Return the checks that fail."""
    found = (find(name, partial(check, subject)) for name, check in checks_for_model(subject).items())
    return [finding.check for finding in found if not finding.passed]


def broken(run, forward):
    """Return the run's subject with another forward of its encoder."""
    subject = make_subject(open_run(run))
    encoder, whole = subject.model.encoder, subject.model.encoder.forward
    encoder.forward = lambda x, memory=None: forward(x, whole(x, memory))
    return subject


def test_a_model_that_reads_padding_is_found(run):
    subject = broken(run, lambda x, y: y.with_data(y.data + x.data.mean(1, keepdim=True)))
    with pytest.raises(AssertionError, match="outputs with other padding: differ by"):
        check_padding(subject)


def test_a_model_whose_rows_know_each_other_is_found(run):
    subject = broken(run, lambda x, y: y.with_data(y.data + y.data[:1, :1]))
    assert {"rows permute", "losses: many = one by one"} <= set(problems(subject))


def test_a_step_that_differs_is_found(run):
    subject = make_subject(open_run(run))
    step = subject.model.backbone.step
    subject.model.backbone.step = lambda x, state, memory=None: (step(x, state, memory)[0] + 1, state)
    assert problems(subject) == ["step = forward"]


def test_a_gradient_that_is_not_finite_is_found(run):
    subject = make_subject(open_run(run))
    with torch.no_grad():
        subject.run.model.head.bias[4] = float("inf")
    assert "gradients finite" in problems(subject)


def test_weights_that_differ_are_found(run):
    opened = open_run(run)
    with torch.no_grad():
        opened.model.head.bias += 1e-7
    with pytest.raises(AssertionError, match=r"head\.bias differs from the checkpoint"):
        check_reload(opened)


def test_numbers_may_differ_in_the_last_digit():
    from weft.testing.runs import _alike

    assert _alike("cat", "cat")
    assert not _alike("cat", "dog")
    assert _alike(json.dumps([1.0, 2.00001]), json.dumps([1.0, 2.0]))
    assert not _alike("[1.0, 2.0]", "[1.0, 2.1]")
