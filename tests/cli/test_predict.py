import io
import json
import subprocess
import sys
from collections.abc import Iterator

import pytest
from tiny_runs import train_classes, weft_inside
from tree import ROOT

import weft
from weft.cli.predict import answer_all, answers, as_line
from weft.tasks import Prediction


def test_one_line_out_for_each_line_in(reverse_run):
    ended = weft_inside("predict", str(reverse_run), stdin=b"abc\n\n \ndab\r\nbbc")
    assert (ended.code, ended.err) == (0, "")
    assert ended.out == "cba\n\n\nbad\ncbb\n"


def test_no_line_gives_no_line(reverse_run):
    assert weft_inside("predict", str(reverse_run)).out == ""


def test_batched_and_one_by_one_are_the_same(reverse_run):
    lines = b"abc\n\nddd\nbad\n"
    batched = weft_inside("predict", str(reverse_run), stdin=lines)
    assert weft_inside("predict", str(reverse_run), "-u", stdin=lines) == batched
    assert weft_inside("predict", str(reverse_run), "--stream", stdin=lines) == batched


def test_json_holds_scores_and_n_best(reverse_run):
    words = ("--json", "decoding.method=beam", "decoding.beam=3", "decoding.nbest=2")
    ended = weft_inside("predict", str(reverse_run), *words, stdin=b"abc\n\n")
    first, second = map(json.loads, ended.out.splitlines())
    assert first["text"] == first["nbest"][0]["text"] == "cba"
    assert first["nbest"][0]["score"] >= first["nbest"][1]["score"]
    assert second == {"text": ""}


def test_a_run_agrees_with_itself(reverse_run):
    run = str(reverse_run)
    alone = weft_inside("predict", run, "--json", stdin=b"abc\n")
    twice = weft_inside("predict", run, "--ensemble", run, "--json", stdin=b"abc\n")
    first, second = (json.loads(ended.out)["nbest"][0] for ended in (alone, twice))
    assert first["text"] == second["text"]
    assert first["log_prob"] == pytest.approx(second["log_prob"], abs=1e-5)


def test_a_checkpoint_is_named(reverse_run):
    early = weft_inside("predict", str(reverse_run), "--checkpoint", "50", stdin=b"abc\n")
    assert early.code == 0
    absent = weft_inside("predict", str(reverse_run), "--checkpoint", "step-7", stdin=b"abc\n")
    assert absent.code == 2
    assert "has no checkpoint `step-7`. Known: step-" in absent.err


WRONG = {
    "no UTF-8": ([], b"ab\n\xff\n", "stdin, line 2: is not UTF-8: byte 0xff at offset 3."),
    "a tab": ([], b"ab\tba\n", "stdin, line 1: It holds a tab, but an input is one column."),
    "a NUL": ([], b"a\0b\n", "stdin, line 1: holds a NUL byte (offset 1)."),
    "no setting": (["abc"], b"", "`abc` is not a setting. Write it as key=value."),
    "a settled key": (["model.width=3"], b"", "`model` is settled by training. Free here: device"),
    "a key of the search": (["beam=3"], b"", "`beam` is settled by training."),
    "an idle key": (
        ["decoding.beam=3"],
        b"",
        "`decoding.beam` belongs to method beam, but `decoding.method`",
    ),
    "an unknown key": (
        ["decoding.bean=3"],
        b"",
        "There is no key `decoding.bean`. Did you mean `decoding.beam`?",
    ),
    "streamed JSON": (["--stream", "--json"], b"", "Streamed tokens are no JSON."),
    "streamed beam": (
        ["--stream", "decoding.method=beam"],
        b"abc\n",
        "`decoding.method` must be greedy or sample to stream, but is beam.",
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_a_mistake_is_one_line(reverse_run, case):
    words, stdin, line = WRONG[case]
    ended = weft_inside("predict", str(reverse_run), *words, stdin=stdin)
    assert (ended.code, ended.out) == (2, "")
    assert ended.err.startswith(f"weft: {line}"), ended.err
    assert ended.err.count("\n") == 1


def test_a_damaged_checkpoint_ends_with_3(tmp_path):
    run = train_classes(tmp_path)
    weights = run.folder.checkpoint("best").path / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-1] + b"!")
    ended = weft_inside("predict", str(run.path), stdin=b"x\n")
    assert ended.code == 3
    assert "model.safetensors is damaged" in ended.err


def test_a_classifier_cannot_stream_or_join(tmp_path):
    path = str(train_classes(tmp_path).path)
    assert "classify answers at once" in weft_inside("predict", path, "--stream", stdin=b"x\n").err
    assert "classes does classify" in weft_inside("predict", path, "--ensemble", path, stdin=b"x\n").err
    assert weft_inside("predict", path, stdin=b"x 1\n\nx 0\n").out == "odd\n\neven\n"


def test_an_answer_is_given_before_the_next_line_is_read(reverse_run):
    read: list[str] = []

    def inputs() -> Iterator[str]:
        for word in ("abc", "bad"):
            read.append(word)
            yield word

    first = next(answers(weft.open(reverse_run), inputs(), at_once=True))
    assert (first.text, read) == ("cba", ["abc"])


def test_blank_inputs_keep_their_places():
    def answer(raws):
        yield from [Prediction(raw.upper()) for raw in list(raws)]

    texts = [p.text for p in answer_all([None, "a", None, None, "b", None], answer)]
    assert texts == ["", "A", "", "", "B", ""]


def test_a_newline_in_an_answer_does_not_break_the_line():
    assert as_line(Prediction("a\nb\r")) == "a\\nb\\r\n"


def test_a_reader_that_leaves_is_no_error(reverse_run):
    code = f"import sys; sys.path.insert(0, {str(ROOT)!r}); from weft.cli.main import main; main()"
    verb = f'"{sys.executable}" -c "$CODE" predict "$RUN" -u'
    command = f"yes abc | head -n 3000 | {verb} | head -n 1; echo ${{PIPESTATUS[2]}}"
    environment = {"CODE": code, "RUN": str(reverse_run), "PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        ["bash", "-c", command], env=environment, capture_output=True, text=True, timeout=120
    )
    assert (result.stdout, result.stderr) == ("cba\n0\n", "")


def test_text_beyond_ascii_passes(reverse_run):
    ended = weft_inside("predict", str(reverse_run), stdin="a\u2028ü\n".encode())
    assert ended.code == 0
    assert ended.out.count("\n") == 1
    assert isinstance(io.StringIO(ended.out).read(), str)
