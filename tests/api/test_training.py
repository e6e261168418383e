import numpy as np
import pandas as pd
import pytest
from tiny_runs import pairs

import weft
from weft.api import training
from weft.api.describe import advice, describe_field, left_out
from weft.api.settings import parse_settings
from weft.core.errors import ConfigError, DataError
from weft.data import Dataset, FieldOptions, LabelField, RowSource, fit_text, prepare
from weft.data.store import PrepareCounts

SHORT = {"threads": 1, "train": {"steps": 2}}


def test_a_file_and_short_names(tmp_path):
    path = tmp_path / "pairs.tsv"
    path.write_text("".join(f"{a} {a}\t{b}\n" for a, b in pairs()))
    run = weft.train(
        path,
        task="translate",
        model="lstm+additive",
        budget="20K",
        data={"tokens": "char"},
        run=tmp_path / "run",
        **SHORT,
    )
    assert abs(run.parameters / 20_000 - 1) < 0.05
    assert run.settings.model.common.attention == "additive"
    assert len(run.predict(["abc abc"])) == 1
    assert weft.open(tmp_path / "run").predict(["abc abc"]) == run.predict(["abc abc"])


@pytest.mark.parametrize("shape", ["rows", "columns", "frame", "mapping"])
def test_data_in_memory_come_in_many_shapes(tmp_path, shape):
    texts, labels = [f"t{i} {i % 3}" for i in range(60)], [str(i % 3) for i in range(60)]
    data = {
        "rows": list(zip(texts, labels, strict=True)),
        "columns": (texts, labels),
        "frame": pd.DataFrame({"text": texts, "label": labels}),
        "mapping": {"text": texts, "label": labels},
    }[shape]
    run = weft.train(
        data, task="classify", model={"family": "gru", "width": 4}, run=tmp_path / "run", **SHORT
    )
    assert run.evaluate(data).lengths.tolist() == [2] * 60


def test_arrays_are_series(tmp_path):
    series = list(np.random.default_rng(0).random((40, 6, 2), np.float32))
    targets = [float(item.sum()) for item in series]
    task = {"name": "regress", "input": "values"}
    run = weft.train(
        (series, targets), task=task, model={"family": "gru", "width": 4}, run=tmp_path / "run", **SHORT
    )
    assert float(run.predict(series[:1])[0]) == pytest.approx(np.mean(targets), abs=3)


def test_parts_may_be_given_apart(tmp_path):
    rows = pairs()
    data = {"tokens": "char"}
    run = weft.train(
        rows[:40],
        valid=rows[40:50],
        test=rows[50:],
        task="translate",
        data=data,
        run=tmp_path / "run",
        **SHORT,
    )
    assert len(run.evaluate().lengths) == 14
    assert len(run.evaluate(part="valid").lengths) == 10


def test_data_that_cannot_be_read_leave_no_folder(tmp_path):
    with pytest.raises(DataError, match="Row 2 must have 2 values"):
        weft.train([("a", "b"), ("c",)], task="translate", run=tmp_path / "run", **SHORT)
    assert not (tmp_path / "run").exists()
    with pytest.raises(DataError, match="Training needs data"):
        weft.train(task="translate", run=tmp_path / "run", **SHORT)
    with pytest.raises(ConfigError, match=r"There is no key `trian`. Did you mean `train`"):
        weft.train(pairs(), task="translate", trian={})


def test_a_field_is_told_by_its_size():
    assert describe_field(LabelField(["a", "b"])) == "label, 2 entries"


def test_what_was_left_out_is_told():
    counts = PrepareCounts(kept=5, empty=1, cut=2, unknown={"source": 1000, "target": 0})
    told = left_out(Dataset({}, counts=counts))
    assert told == ["1 empty ones dropped", "2 over-long ones cut", "1,000 unknown in source"]
    assert left_out(Dataset({})) == []


@pytest.mark.parametrize(("tokens", "advised"), [("word", True), ("char", False)])
def test_a_vocabulary_that_knows_too_few_words_is_told(tokens, advised):
    known, rows = ["a b", "c d"], [f"a {i}" for i in range(5)]
    fields = {"text": fit_text(known, FieldOptions(tokens=tokens))}
    data = prepare(RowSource.from_memory(rows, ("text",)), fields)
    told = ["50% of the words in text are unknown to its vocabulary. Try data.tokens=char or subword."]
    assert advice(data, fields) == (told if advised else [])


@pytest.mark.parametrize(("family", "attention"), [("gru", "additive"), ("transformer", "multihead")])
def test_attention_left_to_the_family_is_told_by_its_kind(tmp_path, family, attention):
    said: list[str] = []
    model = {"family": family, "width": 16}
    settings = parse_settings({"task": "translate", "model": model, "run": str(tmp_path / "r"), **SHORT})
    training.start(settings, {"train": pairs()}, quiet=True, say=said.append)
    assert any(line.startswith(f"model: {family} with {attention} attention, width 16") for line in said)
