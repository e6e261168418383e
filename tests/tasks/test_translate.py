"""Translation: shift and loss by hand, perplexity, order of answers, a copy task learned in seconds."""

import math

import numpy as np
import pytest
import torch

import weft
from weft.core.config import parse
from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.data import BOS, EOS, FieldOptions, fit_fields, prepare
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import parse_model
from weft.tasks import BatchConfig, Translate
from weft.tasks.translate import TranslateConfig, shift

PAIRS = [("a b", "b a"), ("c", "c"), ("b c a c", "c a c b"), ("c a", "a c"), ("a", "a")]
ROWS = [Row(i, pair) for i, pair in enumerate(PAIRS, 1)]


def make_task(tokens: str = "word", shared: bool = True, batch: BatchConfig | None = None):
    fields = fit_fields(ROWS, Translate.schema(TranslateConfig()), FieldOptions(tokens=tokens, shared=shared))
    return Translate(TranslateConfig(), fields, batch or BatchConfig()), prepare(ROWS, fields)


def make_model(task, family: str = "gru", **values):
    torch.manual_seed(2)
    values = {"family": family, "width": 8, "layers": 1, "dropout": 0, "input_dropout": 0, **values}
    model = task.build(parse_model(values, task.sides)).double()
    for leaf in model.parameters():
        leaf.data += 0.3 * torch.randn_like(leaf)
    return model


def batch_of(task, rows) -> dict[str, Sequences]:
    columns = ((task.source, 0), (task.target, 1))
    drawn = [
        Sequences.pad([torch.from_numpy(f.encode(r.values[i])).long() for r in rows]) for f, i in columns
    ]
    return dict(zip(("source", "target"), drawn, strict=True))


def test_shift_by_hand():
    inputs, wanted = shift(
        Sequences(torch.tensor([[7, 8, 9], [5, 99, 99], [99, 99, 99]]), torch.tensor([3, 1, 0]))
    )
    assert inputs.lengths.tolist() == [4, 2, 1]
    assert [row.tolist() for row in inputs.unpad()] == [[BOS, 7, 8, 9], [BOS, 5], [BOS]]
    assert wanted.tolist() == [[7, 8, 9, EOS], [5, EOS, -1, -1], [EOS, -1, -1, -1]]


def log_probs(model, source, target) -> torch.Tensor:
    """Return log p of every target token and EOS of one pair, read one by one."""
    said, out = [BOS], []
    for token in [*target.tolist(), EOS]:
        y = model(Sequences.full(source.unsqueeze(0)), Sequences.full(torch.tensor([said])))
        out.append(torch.log_softmax(model.head(y.data[0, -1]), -1)[token])
        said.append(token)
    return torch.stack(out)


@pytest.mark.parametrize("family", ["gru", "transformer", "tcn"])
def test_the_loss_is_the_sum_of_minus_log_p_over_rows_alone(family):
    task, _ = make_task()
    model, batch = make_model(task, family).eval(), batch_of(task, ROWS)
    loss = task.loss(model, batch, None, 0.0)
    pairs = zip(batch["source"].unpad(), batch["target"].unpad(), strict=True)
    want = sum(-log_probs(model, source, target).sum().item() for source, target in pairs)
    assert loss.total.item() == pytest.approx(want, abs=1e-8)
    assert int(loss.count) == sum(len(target.split()) + 1 for _, target in PAIRS)
    assert loss.state is None


def test_smoothing_spreads_over_the_vocabulary():
    task, _ = make_task()
    model, batch = make_model(task).eval(), batch_of(task, ROWS[:1])
    inputs, wanted = shift(batch["target"])
    log_p = torch.log_softmax(model.head(model(batch["source"], inputs).data[0]), -1)
    picked = log_p.gather(1, wanted.T).squeeze(1)
    want = -(0.9 * picked + 0.1 * log_p.mean(1)).sum()
    assert task.loss(model, batch, None, 0.1).total.item() == pytest.approx(want.item(), abs=1e-9)


def test_validation_and_evaluation_agree_with_the_loss():
    task, data = make_task(batch=BatchConfig(tokens=8))
    model = make_model(task)
    loss = task.loss(model.eval(), batch_of(task, ROWS), None, 0.0)
    mean = loss.total.item() / int(loss.count)
    model.train()
    values = task.validate(model, data)
    assert model.training
    assert values["loss"] == pytest.approx(mean, abs=1e-6)
    assert values["perplexity"] == pytest.approx(math.exp(mean), rel=1e-6)
    assert 0 <= values["accuracy"] <= 1
    assert set(values) == set(task.better)
    measured = task.evaluate(model, data, ROWS, DecodingConfig()).measurements
    assert measured["perplexity"].value == pytest.approx(math.exp(mean), rel=1e-6)
    assert list(measured) == ["bleu", "chrf", "exact_match", "perplexity"]


def test_evaluation_lines_up_with_the_rows():
    task, data = make_task(batch=BatchConfig(rows=2))
    model = make_model(task)
    evaluation = task.evaluate(model, data, ROWS, DecodingConfig(max_length=6))
    assert evaluation.references == [target for _, target in PAIRS]
    assert np.asarray(evaluation.lengths).tolist() == [len(source.split()) for source, _ in PAIRS]
    alone = [
        p.text for p in task.predict(model, [source for source, _ in PAIRS], DecodingConfig(max_length=6))
    ]
    assert evaluation.predictions == alone


@pytest.mark.parametrize("method", ["greedy", "beam", "sample"])
def test_answers_come_in_order_with_an_empty_line_for_nothing(method):
    task, _ = make_task(batch=BatchConfig(tokens=6))
    model, decoding = make_model(task), DecodingConfig(method=method, beam=3, nbest=1, max_length=6)
    inputs = ["", "b c a c", "a", "", "c a"]
    found = list(task.predict(model, inputs, decoding))
    assert [p.text == "" and p.plain["nbest"] == [] for p in found] == [True, False, False, True, False]
    if method != "sample":
        for line, prediction in zip(inputs, found, strict=True):
            [alone] = task.predict(model, [line], decoding)
            assert alone.text == prediction.text


def test_the_n_best_are_given_with_their_scores():
    task, _ = make_task()
    [found] = task.predict(
        make_model(task), ["a b"], DecodingConfig(method="beam", beam=4, nbest=3, max_length=5)
    )
    nbest = found.plain["nbest"]
    assert [set(entry) for entry in nbest] == [{"text", "score", "log_prob", "finished"}] * 3
    assert found.text == nbest[0]["text"]
    scores = [entry["score"] for entry in nbest]
    assert scores == sorted(scores, reverse=True)


def test_one_vocabulary_has_one_table():
    task, _ = make_task(shared=True)
    assert task.source is task.target
    model = make_model(task)
    assert model.source_input is model.target_input


def test_a_metric_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"`task.metrics` cannot be `blue`. Did you mean `bleu`\?"):
        parse(TranslateConfig, {"metrics": ["blue"]}, "task")


def test_a_copy_task_is_learned(tmp_path):
    torch.manual_seed(0)
    lengths = torch.randint(2, 6, (900,)).tolist()
    words = list(dict.fromkeys("".join("abcdefgh"[i] for i in torch.randperm(8)[:n]) for n in lengths))
    pairs = [(word, word) for word in words]
    run = weft.train(
        pairs[100:],
        task="translate",
        valid=pairs[:20],
        test=pairs[20:100],
        run=tmp_path / "run",
        threads=1,
        data={"tokens": "char", "shared": True},
        batch={"rows": 32},
        model={"family": "gru+additive", "feed": "output", "width": 48, "layers": 1, "input_dropout": 0},
        train={"epochs": 22, "lr": 1e-2, "schedule": "cosine"},
    )
    assert run.evaluate().measurements["exact_match"].value >= 0.95
    assert run.predict(["fade", "", "cab"]) == ["fade", "", "cab"]
