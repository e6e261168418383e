"""Telling classes: hand-worked numbers, weights, several labels, every kind of input, a tiny training."""

import math

import numpy as np
import pytest
import torch

import weft
from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.config import parse
from weft.core.sequences import Sequences
from weft.data import FieldOptions, fit_fields, prepare
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import PooledModel, parse_model
from weft.tasks import BatchConfig, Classify
from weft.tasks.classify import ClassifyConfig, class_weights, judge_sets

TEXTS = [("a b", "x"), ("b c d", "y"), ("d", "x"), ("e f a b c", "x")]
ROWS = [Row(i, pair) for i, pair in enumerate(TEXTS, 1)]
SEVERAL = [Row(1, ("a b", "p,q")), Row(2, ("b c", "q")), Row(3, ("c", "")), Row(4, ("d a", "q,r"))]


def make_task(rows=ROWS, batch=None, multi=False, **task):
    config = parse(ClassifyConfig, task, "task")
    options = FieldOptions(tokens="word", multi_label=multi)
    fields = fit_fields(rows, Classify.schema(config), options)
    return Classify(config, fields, batch or BatchConfig()), fields


def make_model(task, **model):
    torch.manual_seed(3)
    values = {"family": "lstm", "width": 8, "layers": 1, "input_dropout": 0, **model}
    return task.build(parse_model(values, ("encoder",)))


def batch_of(task, rows):
    inputs = [torch.from_numpy(task.input.encode(row.values[0])) for row in rows]
    labels = torch.stack([torch.from_numpy(task.label.encode(row.values[1])) for row in rows])
    padded = Sequences.pad(inputs)
    return {"input": padded.with_data(padded.data.long()), "label": labels}


class Fixed(PooledModel):
    """Gives the logits it holds."""

    def __init__(self, logits):
        torch.nn.Module.__init__(self)
        self.logits = torch.nn.Parameter(torch.tensor(logits, dtype=torch.float32))

    def forward(self, x):
        return self.logits


def test_the_loss_is_the_sum_over_items_of_minus_log_p():
    task, _ = make_task()
    loss = task.loss(Fixed([[math.log(3), 0.0], [0.0, 0.0]]), batch_of(task, ROWS[:2]), None, 0.0)
    assert loss.total.item() == pytest.approx(-math.log(3 / 4) + math.log(2))
    assert int(loss.count) == 2


def test_rare_classes_weigh_more_and_the_mean_weight_is_one():
    task, fields = make_task(weights="balanced")
    data = prepare(ROWS, fields)  # 3 of x, 1 of y
    weights = class_weights(data, 2, False)
    assert weights.tolist() == pytest.approx([4 / 6, 4 / 2])
    assert (3 * weights[0] + weights[1]) / 4 == pytest.approx(1)
    task.feed(data, 0)
    loss = task.loss(Fixed([[0.0, 0.0]] * 2), batch_of(task, ROWS[:2]), None, 0.0)
    assert loss.total.item() == pytest.approx((4 / 6 + 2) * math.log(2))


def test_the_loss_of_several_labels_is_the_mean_over_them():
    task, fields = make_task(SEVERAL, multi=True)
    logits = [[math.log(3), 0.0, -math.log(3)]]  # p, q, r: probabilities 3/4, 1/2, 1/4; wanted 1, 1, 0
    loss = task.loss(Fixed(logits), batch_of(task, SEVERAL[:1]), None, 0.0)
    assert loss.total.item() == pytest.approx((-2 * math.log(3 / 4) + math.log(2)) / 3)
    assert class_weights(prepare(SEVERAL, fields), 3, True).tolist() == pytest.approx([4 / 3, 4 / 9, 4 / 3])


def test_the_loss_of_a_batch_is_the_sum_of_its_rows_alone():
    for pooling in ("summary", "mean", "max"):
        task, _ = make_task()
        model = make_model(task, pooling=pooling).double().eval()
        whole = task.loss(model, batch_of(task, ROWS), None, 0.1).total.item()
        alone = sum(task.loss(model, batch_of(task, [row]), None, 0.1).total.item() for row in ROWS)
        assert whole == pytest.approx(alone, rel=1e-9)


def test_evaluation_by_hand():
    task, fields = make_task()
    logits = [[1.0, 0.0]] * 4  # always x; three times right
    found = task.evaluate(Fixed(logits), prepare(ROWS, fields), ROWS, DecodingConfig())
    assert found.predictions == ["x"] * 4
    assert found.extra["confusion"].tolist() == [[3, 0], [1, 0]]
    assert found.measurements["accuracy"].value == 3 / 4
    assert found.measurements["macro_f1"].value == pytest.approx(6 / 7 / 2)
    one = math.log(1 + math.e) - 1  # -log p(x)
    assert found.measurements["loss"].value == pytest.approx((3 * one + one + 1) / 4)
    assert found.extra["labels"] == ["x", "y"]
    assert found.extra["baseline"] == {"label": "x", "accuracy": 3 / 4}
    assert found.references == ["x", "y", "x", "x"]
    assert found.sources == [row.values[0] for row in ROWS]
    assert list(found.measurements) == ["accuracy", "macro_f1", "loss"]


def test_an_unseen_label_counts_wrong_and_has_no_loss():
    task, fields = make_task()
    rows = [ROWS[0], Row(2, ("a b", "z"))]
    model, data = make_model(task), prepare(rows, fields)
    found = task.evaluate(model, data, rows, DecodingConfig()).measurements
    assert found["accuracy"].stats.tolist()[1] == [0, 1]
    alone = task.evaluate(model, prepare(rows[:1], fields), rows[:1], DecodingConfig()).measurements
    assert found["loss"].value == pytest.approx(alone["loss"].value, rel=1e-5)
    assert task.validate(model, data)["loss"] == pytest.approx(alone["loss"].value, rel=1e-5)


def test_sets_of_labels_by_hand():
    told = np.array([[1, 1, 0], [0, 1, 0], [1, 0, 0]], bool)
    wanted = np.array([[1, 1, 0], [0, 1, 1], [0, 0, 0]], bool)
    found = judge_sets(told, wanted, np.zeros(3, bool))
    assert found["accuracy"].value == pytest.approx(1 / 3)
    assert found["micro_f1"].value == pytest.approx(2 * 3 / (4 + 4))
    assert found["macro_f1"].value == pytest.approx((2 / 3 + 1 + 0) / 3)
    unseen = judge_sets(told, wanted, np.array([True, False, False]))
    assert unseen["accuracy"].value == 0
    assert unseen["micro_f1"].value == pytest.approx(2 * 3 / (4 + 5))


def test_an_unseen_label_among_several_counts_wrong():
    task, fields = make_task(SEVERAL, multi=True)
    model = make_model(task)
    rows = [Row(1, ("a b", task.label.decode(np.ones(3)))), Row(2, ("c", ["p", "new"]))]
    found = task.evaluate(model, prepare(rows, fields), rows, DecodingConfig())
    assert found.measurements["accuracy"].stats[1, 0] == 0
    assert found.measurements["micro_f1"].stats.shape == (2, 12)
    assert list(found.measurements) == ["accuracy", "micro_f1", "macro_f1", "loss"]


@pytest.mark.parametrize("multi", [False, True])
def test_predictions_line_up_with_their_inputs(multi):
    task, _ = make_task(SEVERAL if multi else ROWS, BatchConfig(tokens=4), multi)
    model = make_model(task)
    lines = ["a b c", "", "d", "new words of which nothing is known"]
    found = list(task.predict(model, lines, DecodingConfig()))
    alone = [next(task.predict(model, [line], DecodingConfig())) for line in lines]
    assert [p.text for p in found] == [p.text for p in alone]
    assert found[1].text == ""
    scores = found[0].plain["scores"]
    assert set(scores) == set(task.label.names)
    if multi:
        assert found[0].text == ",".join(name for name in task.label.names if scores[name] > 0.5)
    else:
        assert found[0].text == max(scores, key=scores.get)
        assert sum(scores.values()) == pytest.approx(1)


def test_a_line_of_words_is_told_like_its_words():
    rows = [Row(1, (["a", "b"], "x")), Row(2, (["c"], "y"))]
    task, _ = make_task(rows, input="words")
    model = make_model(task)
    found = list(task.predict(model, ["a b", ["a", "b"]], DecodingConfig()))
    assert found[0].plain == found[1].plain


def learn(folder, rows, **sections):
    settings = {
        "run": str(folder),
        "batch": {"tokens": 400},
        "train": {"epochs": 8, "lr": 0.01},
        "threads": 1,
        **sections,
    }
    settings["model"] = {"family": "gru", "width": 16, "layers": 1, **sections.get("model", {})}
    return start(
        parse_settings(settings), {"train": rows[:240], "valid": rows[240:], "test": rows[240:]}, quiet=True
    )[0]


def test_a_word_that_tells_is_found(tmp_path):
    chance = np.random.default_rng(0)
    texts = [" ".join(chance.choice(list("abcdefgh"), 6)) for _ in range(300)]
    run = learn(
        tmp_path / "run",
        [(text, "yes" if "a" in text else "no") for text in texts],
        task="classify",
        model={"pooling": "max"},
    )
    assert run.evaluate().measurements["accuracy"].value > 0.97
    assert run.predict(["b c d", "b a d", ""]) == ["no", "yes", ""]
    assert weft.open(tmp_path / "run").predict(["b a d"]) == ["yes"]


def test_several_labels_are_learned(tmp_path):
    chance = np.random.default_rng(1)
    texts = [" ".join(chance.choice(list("abcdef"), 4)) for _ in range(300)]
    rows = [(text, ",".join(["any", *sorted(set(text) & {"a", "b"})])) for text in texts]
    run = learn(tmp_path / "run", rows, task="classify", data={"multi_label": True}, model={"pooling": "max"})
    assert run.evaluate().measurements["micro_f1"].value > 0.97
    assert run.predict(["a b c d", "c c b", "c d"]) == ["a,any,b", "any,b", "any"]


def test_numeric_series_are_told_apart(tmp_path):
    chance = np.random.default_rng(2)
    series = [
        np.cumsum(chance.normal(sign, 1, (n, 2)), 0)
        for sign, n in zip(chance.choice([-1, 1], 300), chance.integers(5, 15, 300), strict=True)
    ]
    rows = [(values, "up" if values[-1].sum() > 0 else "down") for values in series]
    run = learn(tmp_path / "run", rows, task={"name": "classify", "input": "values"})
    assert run.evaluate().measurements["accuracy"].value > 0.95
    assert run.predict([np.full((6, 2), -9.0), [[9.0, 8.0], [12.0, 14.0]]]) == ["down", "up"]


def test_the_inputs_shown_are_those_of_the_items_though_files_share_line_numbers(tmp_path):
    (tmp_path / "data").mkdir()
    for label in ("x", "y"):
        (tmp_path / "data" / f"{label}.txt").write_text("".join(f"{label}{i} {label}\n" for i in range(30)))
    settings = {
        "task": "classify",
        "run": str(tmp_path / "run"),
        "threads": 1,
        "data": {"train": [str(tmp_path / "data")], "format": "label_files", "fractions": [0.5, 0.5, 0]},
        "train": {"steps": 1},
    }
    run, _ = start(parse_settings(settings), quiet=True)
    found = run.evaluate(part="valid")
    assert [source[0] for source in found.sources or []] == found.references
