import json
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from tiny_runs import reverse_words, train_reverse, weft_inside, write_pairs
from tree import ROOT

from weft.api.training import start
from weft.cli.train import read_settings
from weft.core.errors import ConfigError, Interrupted
from weft.runs import RunFolder


def test_it_trains_says_what_it_saw_and_what_to_type(tmp_path):
    ended = weft_inside(*reverse_words(tmp_path, "train.log_every=5"))
    assert ended.code == 0
    for words in ("train: 64 items", "source: text as chars, 8 entries", "lstm with additive attention"):
        assert words in ended.err
    assert f"run: {tmp_path / 'run'}" in ended.err
    assert "step 10 " in ended.err
    assert re.search(r"done: +steps reached at step 12, epoch \d", ended.out)
    assert "best:   loss " in ended.out
    assert f"weft predict {tmp_path / 'run'} < FILE" in ended.out
    assert f"weft train --resume {tmp_path / 'run'} train.steps=24" in ended.out
    assert "<img" in (tmp_path / "run/report.html").read_text()


def test_it_speaks_json_and_keeps_quiet(tmp_path):
    ended = weft_inside(*reverse_words(tmp_path), "--json", "--quiet", "--no-report")
    assert (ended.code, ended.err) == (0, "")
    outcome = json.loads(ended.out)
    assert (outcome["run"], outcome["step"], outcome["reason"]) == (str(tmp_path / "run"), 12, "steps")
    assert not (tmp_path / "run/report.html").exists()


def test_settings_lie_over_a_recipe(tmp_path):
    recipe = tmp_path / "mine.yaml"
    recipe.write_text("task: translate\nmodel: {family: gru, width: 8}\ntrain: {steps: 5, lr: 0.5}\n")
    settings = read_settings([str(recipe), "model=lstm+dot", "train.steps=7"])
    assert (settings.model.families, settings.model.common.attention) == ("lstm", "dot")
    assert (settings.model.common.width, settings.train.steps, settings.train.lr) == (8, 7, 0.5)


def test_a_run_goes_on_where_it_stopped_bit_for_bit(tmp_path):
    whole, halves = tmp_path / "whole", tmp_path / "halves"
    for folder, steps in ((whole, 12), (halves, 6)):
        folder.mkdir()
        train_reverse(folder, "train.validate_every=3", steps=steps)
    ended = weft_inside("train", "--resume", str(halves / "run"), "train.steps=12", "-q")
    assert ended.code == 0, ended.err
    one, other = (RunFolder.open(folder / "run").checkpoint("last") for folder in (whole, halves))
    weights = other.weights()
    assert all(bool((tensor == weights[name]).all()) for name, tensor in one.weights().items())


def test_a_damaged_checkpoint_is_told_even_in_quiet(tmp_path):
    train_reverse(tmp_path, "train.checkpoint_every=3", steps=6)
    damaged = RunFolder.open(tmp_path / "run").checkpoint("last").path / "model.safetensors"
    damaged.write_bytes(damaged.read_bytes()[:-1])
    ended = weft_inside("train", "--resume", str(tmp_path / "run"), "train.steps=8", "-q")
    assert ended.code == 0
    assert "Falling back to the checkpoint before step-00000006" in ended.err


WRONG = {
    "nothing at all": ([], "There is nothing to train. Name a recipe"),
    "an absent recipe": (["mine.yaml"], "There is no recipe file `mine.yaml`."),
    "a recipe nearly named": (["translate/daets"], "There is no recipe `translate/daets`. Did you mean"),
    "data as recipe": (
        ["train.tsv"],
        "`train.tsv` is no recipe (NAME.yaml). If it holds data: weft train data",
    ),
    "two recipes": (
        ["a.yaml", "b.yaml"],
        "One recipe at a time can be trained, but here are a.yaml, b.yaml.",
    ),
    "no task": (["data.train=train.tsv"], "`task` must be named."),
    "a task nearly named": (["task=trnslate"], "There is no task `trnslate`. Did you mean `translate`?"),
    "no data": (["task=translate"], "Training needs data. Give a file: data.train=FILE."),
    "absent data": (["task=translate", "data.train=no.tsv"], "There is no file `no.tsv`. Looked in: "),
    "an empty file": (["task=translate", "data.train=empty.tsv"], "empty.tsv is empty."),
    "ragged rows": (["task=translate", "data.train=ragged.tsv"], "ragged.tsv, line 2: has 1 column,"),
    "no UTF-8": (
        ["task=translate", "data.train=bad.tsv"],
        "bad.tsv, line 2: is not UTF-8: byte 0xff at offset 4",
    ),
    "a wrong key": (
        ["task=translate", "data.trian=x"],
        "There is no key `data.trian`. Did you mean `data.train`?",
    ),
    "a wrong type": (["task=translate", "train.lr=fast"], "`train.lr` must be a number, but is 'fast'."),
    "a wrong family": (["task=translate", "model=lsmt"], "There is no family `lsmt`. Did you mean `lstm`?"),
    "an absent device": (
        ["task=translate", "data.train=train.tsv", "device=cuda:99"],
        "`device` cuda:99 is not on this machine.",
    ),
    "no run": (["--resume", "nowhere"], "A run's folder holds a config.yaml, but nowhere does not."),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_line_and_leaves_nothing(tmp_path, monkeypatch, case):
    monkeypatch.chdir(tmp_path)
    write_pairs(tmp_path)
    (tmp_path / "empty.tsv").write_bytes(b"")
    (tmp_path / "ragged.tsv").write_text("a\tb\nc\n")
    (tmp_path / "bad.tsv").write_bytes(b"a\tb\n\xff\tc\n")
    words, line = WRONG[case]
    ended = weft_inside("train", *words, "threads=1", "--quiet")
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"weft: {line}"), ended.err
    assert ended.err.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_a_folder_in_use_is_spared(reverse_run):
    ended = weft_inside(*reverse_words(reverse_run.parent), "--quiet")
    assert ended.code == 2
    assert f"continue it with `weft train --resume {reverse_run}`" in ended.err


@pytest.mark.parametrize(
    ("words", "line"),
    [(["model.width=3"], "A training that goes on keeps its `model`"), (["x.yaml"], "leave `x.yaml` out")],
)
def test_what_is_settled_stays(reverse_run, words, line):
    ended = weft_inside("train", "--resume", str(reverse_run), *words)
    assert ended.code == 2
    assert line in ended.err


def test_two_trainings_do_not_share_a_folder(reverse_run):
    with RunFolder.open(reverse_run).lock():
        ended = weft_inside("train", "--resume", str(reverse_run), "train.steps=200", "-q")
    assert ended.code == 2
    assert "is being trained by process" in ended.err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_saves_and_says_how_to_go_on(tmp_path, number, code):
    settings = read_settings(reverse_words(tmp_path, steps="train.epochs=1000")[1:])
    timer = threading.Timer(0.5, signal.raise_signal, [number])
    with pytest.raises(Interrupted, match=r"saved step-\d+\. Go on with `weft train --resume ") as caught:
        start(settings, quiet=True, say=lambda line: timer.start() if line.startswith("run:") else None)
    assert caught.value.exit_code == code
    assert RunFolder.open(tmp_path / "run").checkpoint("last").step > 0


def test_ctrl_c_in_the_shell(tmp_path):
    words = reverse_words(tmp_path, "train.log_every=1", steps="train.epochs=10000")
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from weft.cli.main import main; main()"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stderr=-1, stdout=-1, text=True)
    assert process.stderr is not None
    while not process.stderr.readline().startswith("step 2 "):
        assert process.poll() is None
        time.sleep(0)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    last = err.splitlines()[-1]
    assert re.match(
        rf"weft: SIGINT: saved step-\d+\. Go on with `weft train --resume {tmp_path / 'run'}`\.", last
    )


def test_commands_quote_a_path_with_blanks(tmp_path):
    folder = tmp_path / "my data"
    folder.mkdir()
    ended = weft_inside(*reverse_words(folder), "-q", "--no-report")
    assert f"weft evaluate '{folder / 'run'}'" in ended.out


def test_a_word_given_twice_is_refused():
    with pytest.raises(ConfigError, match=r"`model\.family` is given twice"):
        read_settings(["task=translate", "model=lstm", "model.family=gru"])
