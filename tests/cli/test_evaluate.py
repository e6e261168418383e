import json

import pytest
from tiny_runs import weft_inside

from weft.cli.evaluate import choose_part
from weft.core.errors import ConfigError
from weft.evaluation import read_evaluation


def test_a_table_with_intervals_is_printed_and_kept(reverse_run):
    ended = weft_inside("evaluate", str(reverse_run))
    assert ended.code == 0
    assert ended.out.startswith("64 items\n")
    for words in ("95 % interval", "exact match ↑", "BLEU signature: "):
        assert words in ended.out
    kept = read_evaluation(reverse_run / "evaluation.json")
    assert (kept["items"], kept["about"]["part"]) == (64, "test")
    assert kept["about"]["checkpoint"].startswith("step-")


def test_another_file_is_measured(reverse_run, tmp_path):
    other = tmp_path / "other.tsv"
    other.write_text("abc\tcba\nbad\tdab\nccd\twrong\n")
    ended = weft_inside("evaluate", str(reverse_run), f"data.test={other}", "--json")
    summary = json.loads(ended.out)
    assert summary["items"] == 3
    assert summary["metrics"]["exact_match"]["value"] == pytest.approx(2 / 3)


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--part", "tset"], "`--part` cannot be `tset`. Did you mean `test`?"),
        (["data.tokens=word"], "`data.tokens` is settled by training"),
        (["data.tets=x"], "There is no key `data.tets`. Did you mean `data.test`?"),
        (["data.test=absent.tsv"], "There is no file `absent.tsv`."),
        (["train.lr=1"], "`train` is settled by training."),
    ],
)
def test_a_mistake_is_one_line(reverse_run, words, line):
    ended = weft_inside("evaluate", str(reverse_run), *words)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"weft: {line}"), ended.err


def test_a_part_follows_from_the_file_given():
    assert choose_part(None, {}) == "test"
    assert choose_part(None, {"valid": "x"}) == "valid"
    assert choose_part("train", {"valid": "x"}) == "train"
    with pytest.raises(ConfigError, match="cannot be `all`"):
        choose_part("all", {})
