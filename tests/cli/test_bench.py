import json

from program import weft


def test_bench_times_tiny_sizes(tmp_path):
    words = ("bench", "speed", "--quick", "--seconds", "0.01", "--device", "cpu")
    result = weft(*words, "rnn", "--only", "LSTM B", "--json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = json.loads(result.stdout)
    assert all(row["green"] and {"weft", "torch.nn"} <= set(row["sides"]) for row in rows)
    assert "rnn 1/3  LSTM B3 T5 4→8 fp32" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_bench_keeps_what_it_measured(tmp_path):
    words = ("bench", "speed", "--quick", "--seconds", "0.01", "--device", "cpu", "--out", "kept")
    result = weft(*words, "loss", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "cross-entropy 9×8×11 fp32  forward+backward  plain" in result.stdout
    (path,) = (tmp_path / "kept").iterdir()
    assert path.name.startswith("loss_")
    assert len(json.loads(path.read_text())["rows"]) == 2


def test_bench_times_attention_and_tcn():
    for subject in ("attention", "tcn"):
        result = weft("bench", "speed", subject, "--quick", "--seconds", "0.01", "--device", "cpu")
        assert (result.returncode, "eager" in result.stdout) == (0, True), result.stderr


def test_bench_refuses_in_one_line():
    result = weft("bench", "speed", "rmn")
    assert result.returncode == 2
    assert result.stderr == "weft: There is nothing called `rmn` to time. Did you mean `rnn`?\n"
