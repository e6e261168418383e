import json

from program import weft

MODEL = ("model=transformer", "model.width=16", "model.heads=2")


def test_explain_without_data():
    words = ("task=translate", *MODEL, "data.vocabulary=300", "train.steps=10")
    result = weft("explain", *words, "--length", "8")
    assert (result.returncode, result.stderr) == (0, "")
    for part in ("encoder layer 2", "FLOPs of the training", "texts of 8 tokens", "embedding  "):
        assert part in result.stdout
    assert "speed" not in result.stdout


def test_explain_with_data_measures_the_time(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"a{i} b c\tc b a{i}\n" for i in range(60)))
    words = (f"data.train={path}", "task=translate", "data.tokens=word", "model=lstm", "model.budget=20K")
    result = weft("explain", *words, "threads=1", "--json", folder=tmp_path)
    assert result.returncode == 0, result.stderr
    seen = json.loads(result.stdout)
    assert seen["speed"]["steps"] == 8
    assert seen["seconds"] > 0
    assert seen["plan"]["batches"] >= 1
    assert abs(seen["budget"]["deviation"]) < 0.05
    assert {p.name for p in tmp_path.iterdir()} == {"pairs.tsv"}


def test_explain_refuses_in_one_line():
    result = weft("explain", "task=classify", "model=lstm")
    assert result.returncode == 2
    assert result.stderr.startswith("weft: What has no text alone must be explained with its data")
    assert result.stderr.count("\n") == 1
