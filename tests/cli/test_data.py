import json
import os
import re

import pytest
from program import weft

from weft.cli.data_check import open_sources, read_options
from weft.cli.data_make import make_files
from weft.cli.overrides import parse_overrides
from weft.core.errors import InputError

PAIRS = "ein hund\ta dog\nzwei hunde\ttwo dogs\nein hund\ta hound\n"


@pytest.fixture
def pairs(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text(PAIRS, encoding="utf-8")
    return path


def test_check_says_what_a_file_holds(pairs):
    result = weft("data", "check", str(pairs))
    assert (result.returncode, result.stderr) == (0, "")
    for words in ("tsv", "1 with another target", "was guessed"):
        assert words in result.stdout


def test_check_holds_the_other_parts_against_train(pairs, tmp_path):
    test = tmp_path / "test.tsv"
    test.write_text("ein hund\ta dog\ndrei katzen\tthree cats\n", encoding="utf-8")
    result = weft("data", "check", str(pairs), f"data.test={test}", "task=translate", "--json")
    report = json.loads(result.stdout)["sources"]["test"]
    assert (report["rows"], report["overlap"], report["unknown"]["1 words"]) == (2, 1, 0.5)


def test_check_numbers_every_bad_line_and_ends_with_2(tmp_path):
    path = tmp_path / "bad.tsv"
    path.write_bytes(b"a\tb\nno tab\nc\td\n\xff\te\n")
    result = weft("data", "check", str(path))
    assert result.returncode == 2
    assert "line 2:" in result.stdout
    assert "line 4:" in result.stdout
    assert "Traceback" not in result.stderr


def test_two_parallel_files_are_one_word(tmp_path):
    (tmp_path / "a.en").write_text("a dog\ntwo\n")
    (tmp_path / "a.de").write_text("ein hund\nzwei\n")
    result = weft("data", "check", "a.en,a.de", folder=tmp_path)
    assert result.returncode == 0
    assert "parallel" in result.stdout


def test_the_words_of_training_are_understood(pairs):
    words = ("task=translate", "data.tokens=char", "data.max_length=1", "--json")
    report = json.loads(weft("data", "check", f"data.train={pairs}", *words).stdout)
    assert report["sources"]["train"]["cut"] == 3


@pytest.mark.parametrize(
    ("content", "name", "kinds"),
    [
        ("1 good film\n0 bad film\n", "reviews.txt", ["text", "label"]),
        ("just a line\nand one more\n", "text.txt", ["text"]),
        (">p1 helix\nACDE\n>p2 coil\nEDCA\n", "x.fasta", ["text", "label"]),
        ("a\tX\nb\tY\n\nc\tX\n\n", "x.conll", ["words", "labels"]),
    ],
)
def test_fields_are_guessed_from_the_format(tmp_path, content, name, kinds):
    path = tmp_path / name
    path.write_text(content)
    assert list(open_sources(read_options([str(path)]))["train"].kinds) == kinds


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ([], "There is no file to check. Give one: weft data check FILE."),
        (["absent.tsv"], "There is no file `absent.tsv`. Looked in: "),
        (["data.trian=x"], "There is no key `data.trian`. Did you mean `data.train`?"),
        (["pairs.tsv", "task.input=text"], "There are keys of `task`, but no task. Name it: task="),
        (["pairs.tsv", "task=sing"], "There is no task `sing`."),
        (
            ["pairs.tsv", "task=classify", "task.inptu=x"],
            "There is no key `task.inptu`. Did you mean `task.input`?",
        ),
        (["a", "b", "c", "d"], "At most three files can be checked at once: train, valid, test. Found 4."),
        (["a", "data.train=b"], "`data.train` is given twice. Keep one of them."),
        (["a", "data=b"], "`data` is given twice. Keep one of them."),
    ],
)
def test_a_wrong_request_is_refused(pairs, monkeypatch, words, line):
    monkeypatch.chdir(pairs.parent)
    with pytest.raises(InputError, match=f"^{re.escape(line)}"):
        open_sources(read_options(words))


def test_a_wrong_request_is_one_line():
    result = weft("data", "check", "absent.tsv")
    assert (result.returncode, result.stdout) == (2, "")
    assert result.stderr.startswith("weft: There is no file `absent.tsv`. Looked in: ")
    assert result.stderr.count("\n") == 1


def test_make_writes_what_check_reads(tmp_path):
    result = weft("data", "make", "reverse", "n=50", "seed=3", folder=tmp_path)
    assert result.returncode == 0
    assert result.stdout.splitlines()[0].split() == ["train", os.path.join("data", "reverse", "train.tsv")]
    line = (tmp_path / "data/reverse/train.tsv").read_text().splitlines()[0]
    source, target = line.split("\t")
    assert target.split() == source.split()[::-1]
    assert weft("data", "check", "reverse/train.tsv", folder=tmp_path).returncode == 0


def test_make_spares_a_folder_in_use(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.tsv").write_text("precious\n")
    result = weft("data", "make", "copy", "n=5", "folder=mine", folder=tmp_path)
    assert result.returncode == 2
    assert "`mine` is not empty" in result.stderr
    assert (tmp_path / "mine/train.tsv").read_text() == "precious\n"


def test_make_writes_over_what_it_may(tmp_path):
    make_files("copy", {"n": 5, "folder": str(tmp_path / "mine")}, force=False)
    before = (tmp_path / "mine/train.tsv").read_text()
    make_files("copy", {"n": 5, "seed": 2, "folder": str(tmp_path / "mine")}, force=True)
    assert (tmp_path / "mine/train.tsv").read_text() != before


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["dtaes"], "There is no synthetic data set `dtaes`. Did you mean `dates`?"),
        (["dates", "m=3"], "There is no key `m`."),
        (["dates", "n=0"], "`n` must be at least 1, but is 0."),
        (["dates", "n=ten"], "`n` must be a whole number, but is 'ten'."),
        (["dates", "more"], "`more` is not a setting. Write it as key=value."),
        (["adding", "n=1000000000000"], "1,200,000,000,000 items"),
    ],
)
def test_make_refuses(tmp_path, monkeypatch, words, line):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=f"^{re.escape(line)}"):
        make_files(words[0], parse_overrides(words[1:]), force=False)
    assert list(tmp_path.iterdir()) == []


def test_list_says_which_sets_are_found(tmp_path, monkeypatch):
    monkeypatch.setenv("WEFT_DATA", str(tmp_path / "sets"))
    (tmp_path / "sets/ett").mkdir(parents=True)
    (tmp_path / "sets/ett/ETTh1.csv.xz").write_bytes(b"x" * 1000)
    found = {
        entry["name"]: entry for entry in json.loads(weft("data", "list", "--json", folder=tmp_path).stdout)
    }
    assert found["ett"]["found"]
    assert found["ett"]["bytes"] == 1000
    assert found["sst"]["missing"] == list(found["sst"]["files"])
    table = weft("data", "list", folder=tmp_path).stdout
    assert "1/1" in table
    assert "WEFT_DATA" in table


def test_every_named_file_is_there(data_file):
    from weft.cli.named import NAMED_SETS

    for entry in NAMED_SETS.values():
        for name in entry.files:
            data_file(name)
