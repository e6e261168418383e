"""Predicting the next token: hand-worked numbers, carried state, tiny trainings, prompts continued."""

import math

import numpy as np
import pytest
import torch

from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.config import parse
from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.data import EOS, FieldOptions, fit_fields, prepare
from weft.data.fields import Limits
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import parse_model
from weft.tasks import BatchConfig, Language
from weft.tasks.language import LanguageConfig

TEXTS = ["abcabc", "", "cab", "bca bca"]
ROWS = [Row(i, (text,)) for i, text in enumerate(TEXTS, 1)]
CHARACTERS = sum(len(text) + 1 for text in TEXTS)
FAMILIES = ("rnn", "lstm", "gru", "tcn", "transformer")


def make(family="lstm", tokens="char", batch=None, **task):
    fields = fit_fields(ROWS, {"text": "text"}, FieldOptions(tokens=tokens, vocabulary=300))
    made = Language(parse(LanguageConfig, task, "task"), fields, batch or BatchConfig())
    torch.manual_seed(2)
    options = {"family": family, "width": 8, "layers": 1, "dropout": 0, "input_dropout": 0}
    model = made.build(parse_model(options, ("decoder",))).double()
    return made, model, prepare(ROWS, fields, None, Limits(empty="keep"))


def blind(model) -> None:
    """Make every token equally likely, whatever was read."""
    for parameter in model.head.parameters():
        torch.nn.init.zeros_(parameter)


@pytest.mark.parametrize("stream", [True, False])
@pytest.mark.parametrize("family", FAMILIES)
def test_a_blind_model_needs_log_v_for_every_character(family, stream):
    task, model, data = make(family, stream=stream)
    blind(model)
    size = task.text.size
    assert task.validate(model, data)["loss"] == pytest.approx(math.log(size))
    found = task.evaluate(model, data, ROWS, DecodingConfig()).measurements
    assert found["bits_per_character"].value == pytest.approx(math.log2(size))
    assert found["perplexity"].value == pytest.approx(size)
    assert found["loss"].stats[:, 1].tolist() == [len(text) + 1 for text in TEXTS]


@pytest.mark.parametrize("tokens", ["char", "byte", "word", "subword"])
def test_bits_count_characters_whatever_the_tokens_are(tokens):
    task, model, data = make(tokens=tokens)
    blind(model)
    found = task.evaluate(model, data, ROWS, DecodingConfig()).measurements["bits_per_character"]
    tokens_in_all = int(data.lengths("text").sum()) + len(TEXTS)
    assert found.stats[:, 1].sum() == CHARACTERS
    assert found.value == pytest.approx(tokens_in_all * math.log2(task.text.size) / CHARACTERS)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_of_lines_is_the_sum_over_lines_alone(family):
    task, model, data = make(family, stream=False, batch=BatchConfig(rows=4))
    together = task.loss(model, task.feed(data, 0).batch(0, 0), None, 0.1)
    alone = []
    for place in range(len(data)):
        ids = torch.tensor(data.item(place)["text"].tolist(), dtype=torch.int64)
        alone.append(task.loss(model, {"text": Sequences.pad([ids])}, None, 0.1))
    assert together.total.item() == pytest.approx(sum(loss.total.item() for loss in alone))
    assert int(together.count) == sum(int(loss.count) for loss in alone) == CHARACTERS


def test_the_state_is_carried_through_the_text():
    task, model, data = make("gru", batch=BatchConfig(rows=1), window=4)
    feed, state, total = task.feed(data, 0), None, 0.0
    assert feed.carries
    for position in range(feed.batches(0)):
        found = task.loss(model, feed.batch(0, position), state, 0.0)
        state, total = found.state, total + found.total.item()
    whole = task.evaluate(model, data, ROWS, DecodingConfig()).measurements["loss"].stats
    assert total == pytest.approx(whole[:, 0].sum(), rel=1e-5)


def test_a_transformer_carries_nothing():
    task, _, data = make("transformer", window=4)
    assert not task.feed(data, 0).carries


def test_a_cut_line_counts_what_is_left_of_it():
    task, model, _ = make()
    data = prepare(ROWS, {"text": task.text}, None, Limits(empty="keep", max_length=2))
    found = task.evaluate(model, data, ROWS, DecodingConfig()).measurements["bits_per_character"]
    assert found.stats[:, 1].tolist() == [3, 1, 3, 3]


@pytest.fixture(scope="module", params=["lstm", "transformer"])
def run(request, tmp_path_factory):
    """Train on the alphabet, said again and again from any letter on, a line at a time."""
    alphabet = "abcdefgh"
    texts = [alphabet[i % 8 :] for i in range(400)]
    settings = {
        "task": {"name": "language", "stream": False},
        "run": str(tmp_path_factory.mktemp("runs") / "alphabet"),
        "model": {"family": request.param, "width": 32, "layers": 1},
        "batch": {"rows": 20},
        "train": {"lr": 1e-2, "epochs": 6},
        "threads": 1,
    }
    memory = {"train": texts, "valid": texts[:40], "test": texts[:40]}
    return start(parse_settings(settings), memory, quiet=True)[0]


def test_a_tiny_training_learns_the_alphabet(run):
    found = run.evaluate().measurements
    letters = 4.5 + 1  # of a line, on the average, with its end
    assert found["bits_per_character"].value < 3 / letters + 0.1  # only the first letter is free: 3 bits
    assert list(found) == ["bits_per_character", "perplexity", "loss", "accuracy"]


def test_prompts_are_continued_to_the_end_of_the_line(run):
    told = run.predict(["abc", "", "efgh", "d"], method="greedy")
    assert told == ["defgh", "", "", "efgh"]


def test_one_prompt_and_many_are_continued_alike(run):
    prompts = ["a", "bcd", "", "c"]
    for options in ({"method": "greedy"}, {"temperature": 2.0, "seed": 5}):
        many = run.predict(prompts, **options)
        assert [len(many), many[2]] == [4, ""]
        assert many == run.predict([*prompts, "h", "ef"], **options)[:4]


def test_samples_follow_the_model_and_stop_at_their_limit(run):
    (prediction,) = run.predictions(["a"], samples=3, max_length=4, seed=1)
    assert [len(one["text"]) <= 4 for one in prediction.plain["nbest"]] == [True] * 3
    assert prediction.text == prediction.plain["nbest"][0]["text"]


@pytest.mark.parametrize(
    ("tokens", "prompt"), [("word", "bca"), ("subword", "bca"), ("byte", "é"), ("char", "b")]
)
def test_prompt_and_continuation_make_the_line(tokens, prompt):
    task, model, _ = make(tokens=tokens)
    (prediction,) = task.predict(model, [prompt], DecodingConfig(method="sample", max_length=9, min_length=9))
    ids = task.text.encode(prompt).tolist()
    shown = task.text.decode(ids)
    assert task.text.decode(task.text.encode(shown).tolist()) == shown
    assert prediction.text
    assert all(special not in prediction.text for special in ("<pad>", "<unk>", "<bos>", "<eos>"))
    assert not prediction.text.startswith(prompt) or tokens in ("char", "word")


def test_a_stream_of_text_is_learned(tmp_path):
    texts = ["abcd"] * 150
    settings = {
        "task": {"name": "language", "window": 16},
        "run": str(tmp_path / "run"),
        "model": {"family": "gru", "width": 16, "layers": 1, "dropout": 0, "input_dropout": 0},
        "batch": {"rows": 4},
        "train": {"lr": 2e-2, "epochs": 10},
        "threads": 1,
    }
    memory = {"train": texts, "valid": texts[:20], "test": texts[:20]}
    run, _ = start(parse_settings(settings), memory, quiet=True)
    found = run.evaluate()
    assert found.measurements["bits_per_character"].value < 0.2
    assert found.measurements["accuracy"].value > 0.97
    assert len(found.lengths) == 20
    assert int(np.sum(found.lengths)) == 80
    assert EOS not in run.session.fields["text"].encode("abcd")


def test_a_cache_finds_again_what_the_model_does_not_know():
    task, model, data = make("gru", cache=50, cache_share=0.5)
    blind(model)
    found = task.evaluate(model, data, ROWS, DecodingConfig()).measurements
    assert found["bits_without_cache"].value == pytest.approx(math.log2(task.text.size))
    assert found["bits_per_character"].value < found["bits_without_cache"].value


@pytest.mark.parametrize(("family", "stream"), [("transformer", True), ("gru", False)])
def test_a_cache_needs_a_stream(family, stream):
    with pytest.raises(ConfigError, match=r"`task.cache` must be 0 unless one text is read in a stream"):
        make(family, stream=stream, cache=50)
