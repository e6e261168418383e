"""Giving every word its label: hand-worked numbers, spans, a tiny training, predictions that line up."""

import math

import numpy as np
import pytest
import torch

import weft
from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.config import parse
from weft.core.sequences import Sequences
from weft.data import FieldOptions, LabelsField, fit_fields, prepare
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import LabelModel, parse_model
from weft.tasks import BatchConfig, Tag
from weft.tasks.tag import TagConfig, has_spans, tag_batch

ROWS = [
    Row(1, (["the", "cat", "sat"], ["D", "N", "V"])),
    Row(2, (["a", "dog"], ["D", "N"])),
    Row(3, (["cats", "sit", "on", "the", "mat"], ["N", "V", "P", "D", "N"])),
]
SCHEMA = {"words": "words", "labels": "labels"}


def make_task(rows=ROWS, batch=None, **task):
    options = FieldOptions(words="chars")
    fields = fit_fields(rows, SCHEMA, options)
    return Tag(parse(TagConfig, task, "task"), fields, batch or BatchConfig()), fields


def make_model(task, **model):
    torch.manual_seed(3)
    config = parse_model(
        {"family": "lstm", "width": 8, "layers": 1, "dropout": 0, "word_width": 4, **model}, ("encoder",)
    )
    return task.build(config).double()


def batch_of(task, rows):
    pad = [torch.from_numpy(task.words.encode(row.values[0])).long() for row in rows]
    labels = [torch.from_numpy(task.labels.encode(row.values[1])) for row in rows]
    return {"words": Sequences.pad(pad), "labels": Sequences.pad(labels)}


class Fixed(LabelModel):
    """Gives the logits it holds."""

    def __init__(self, logits):
        torch.nn.Module.__init__(self)
        self.logits = torch.nn.Parameter(torch.tensor(logits))

    def forward(self, x):
        return x.with_data(self.logits)


def test_the_loss_is_the_sum_over_words_of_minus_log_p():
    task, _ = make_task()  # labels D N P V
    batch = batch_of(task, ROWS[:2])
    logits = np.zeros((2, 3, 4))
    logits[0, 0, 0] = math.log(5)  # p(D) = 5 / 8 at the first word; elsewhere each label has 1 / 4
    logits[1, 2] = 99  # padding
    loss = task.loss(Fixed(logits), batch, None, 0.0)
    assert int(loss.count) == 5
    assert loss.total.item() == pytest.approx(-math.log(5 / 8) + 4 * math.log(4))


def test_label_smoothing_moves_its_share_to_all_labels():
    task, _ = make_task()
    logits = np.zeros((1, 2, 4))
    logits[0, 0, 0] = math.log(5)
    loss = task.loss(Fixed(logits), batch_of(task, ROWS[1:2]), None, 0.4)
    first = 0.6 * -math.log(5 / 8) + 0.1 * (-math.log(5 / 8) - 3 * math.log(1 / 8))
    assert loss.total.item() == pytest.approx(first + math.log(4))


def test_the_loss_of_a_batch_is_the_sum_of_its_rows_alone():
    task, _ = make_task()
    model = make_model(task).eval()
    whole = task.loss(model, batch_of(task, ROWS), None, 0.1)
    alone = [task.loss(model, batch_of(task, [row]), None, 0.1) for row in ROWS]
    assert whole.total.item() == pytest.approx(sum(a.total.item() for a in alone), rel=1e-9)
    assert int(whole.count) == 10


def test_an_unseen_label_has_no_loss_and_counts_wrong():
    task, fields = make_task()
    rows = [Row(1, (["the", "cat"], ["D", "X"]))]
    model = make_model(task).float()
    data = prepare(rows, fields)
    alone = task.loss(model.eval(), batch_of(task, rows), None, 0.0)
    assert int(alone.count) == 1
    values = task.validate(model, data)
    assert values["loss"] == pytest.approx(alone.total.item(), rel=1e-5)
    found = task.evaluate(model, data, rows, DecodingConfig())
    assert found.measurements["accuracy"].stats[0, 1] == 2
    assert found.references == ["D X"]
    assert found.measurements["accuracy"].value == pytest.approx(values["accuracy"])


def test_padding_changes_no_label_and_no_loss():
    labels = Sequences.pad([torch.tensor([1, 0]), torch.tensor([2])])
    logits = torch.randn(2, 2, 3)
    first = tag_batch(Sequences(logits, labels.lengths), labels)
    wider = torch.cat([logits, torch.full((2, 4, 3), 7.0)], dim=1)
    padded = labels.with_data(torch.nn.functional.pad(labels.data, (0, 4), value=1))
    second = tag_batch(Sequences(wider, labels.lengths), padded)
    for a, b in zip(first, second, strict=True):
        assert a.predicted.tolist() == b.predicted.tolist()
        assert a.nll == pytest.approx(b.nll)
        assert a.counted == b.counted == len(a.wanted)


def test_evaluation_counts_words_by_item():
    task, fields = make_task(batch=BatchConfig(rows=2))
    found = task.evaluate(make_model(task).float(), prepare(ROWS, fields), ROWS, DecodingConfig())
    assert list(found.measurements) == ["accuracy", "macro_f1", "loss"]
    assert found.measurements["accuracy"].stats[:, 1].tolist() == [3, 2, 5]
    assert found.lengths.tolist() == [3, 2, 5]
    assert found.references == ["D N V", "D N", "N V P D N"]
    assert found.sources == [" ".join(row.values[0]) for row in ROWS]
    assert [len(line.split()) for line in found.predictions or []] == [3, 2, 5]
    assert found.extra["confusion"].sum() == 10
    assert found.extra["baseline"] == {"label": "N", "accuracy": 4 / 10}
    told = " ".join(found.predictions or []).split()
    right = sum(p == r for p, r in zip(told, " ".join(found.references).split(), strict=True))
    assert found.measurements["accuracy"].value == pytest.approx(right / 10)


SPANS = [
    Row(1, (["ann", "lee", "left"], ["B-PER", "I-PER", "O"])),
    Row(2, (["in", "oslo"], ["O", "B-LOC"])),
]


def test_labels_of_spans_are_noticed_and_judged_by_spans():
    task, fields = make_task(SPANS)
    model = make_model(task).float()
    data = prepare(SPANS, fields)
    assert "span_f1" in task.validate(model, data)
    assert next(iter(task.evaluate(model, data, SPANS, DecodingConfig()).measurements)) == "span_f1"
    task, _ = make_task(SPANS, spans="false")
    assert "span_f1" not in task.validate(model, data)


@pytest.mark.parametrize(
    ("names", "marked"),
    [
        (["B-X", "I-X", "O"], True),
        (["B-X"], True),
        (["O"], False),
        (["I-X", "O"], False),
        (["B-X", "NOUN"], False),
        (["B-X", "I-X", "E-X", "S-X", "O"], True),
        (["S-X", "O"], False),
    ],
)
def test_labels_of_spans_look_like_that(names, marked):
    assert has_spans(LabelsField(names).names) == marked


def test_predictions_line_up_with_their_inputs():
    task, _ = make_task(batch=BatchConfig(tokens=4))
    model = make_model(task).float()
    lines = ["the cat sat", "", "a dog", "unheard of words here", "   "]
    found = list(task.predict(model, lines, DecodingConfig()))
    assert [len(p.text.split()) for p in found] == [3, 0, 2, 4, 0]
    alone = [next(task.predict(model, [line], DecodingConfig())).text for line in lines]
    assert [p.text for p in found] == alone
    assert found[2].plain["labels"] == found[2].text.split()
    assert next(task.predict(model, [["a", "dog"]], DecodingConfig())).text == found[2].text
    assert all(0.25 <= score <= 1 for score in found[2].plain["scores"])


def test_letters_tell_of_words_never_seen(tmp_path):
    """Words on -a are X, on -b are Y; the test's words are new, so only their letters can tell."""
    chance = np.random.default_rng(0)

    def item(letters):
        words = ["".join(chance.choice(list(letters), 3)) + end for end in chance.choice(list("ab"), 4)]
        return words, ["X" if word.endswith("a") else "Y" for word in words]

    train, test = [item("cdefghijkl") for _ in range(150)], [item("cdefghijkl") for _ in range(40)]
    settings = {
        "task": "tag",
        "run": str(tmp_path / "run"),
        "model": {"family": "gru", "width": 16, "layers": 1, "word_width": 8, "word_dropout": 0.5},
        "train": {"epochs": 6, "lr": 0.01},
        "batch": {"tokens": 200},
        "threads": 1,
    }
    run, _ = start(parse_settings(settings), {"train": train, "valid": test, "test": test}, quiet=True)
    assert run.evaluate().measurements["accuracy"].value > 0.98
    assert run.predict(["ccca dddb eeea"]) == ["X Y X"]
    again = weft.open(tmp_path / "run")
    assert again.predict([["ccca", "dddb"]]) == ["X Y"]
