import shutil

import numpy as np
import pytest
import torch
from tiny_runs import pairs, train_classes

import weft
from weft.core.errors import ConfigError, DataError, InputError


@pytest.fixture(scope="module")
def run(reverse_run):
    return weft.open(reverse_run)


def test_a_run_answers_as_it_learned(run):
    assert run.predict(["abc", "", "dab"]) == ["cba", "", "bad"]
    assert run.parameters == sum(p.numel() for p in run.model.parameters())
    assert "translate, lstm" in repr(run)


def test_one_text_is_not_a_list_of_letters(run):
    with pytest.raises(InputError, match=r"was given one text. Try predict\(\[text\]\)"):
        run.predict("abc")


def test_the_search_may_change_for_a_call(run):
    first = next(run.predictions(["abc"], method="beam", beam=3, nbest=2))
    assert first.plain["nbest"][0]["text"] == "cba"
    assert len(first.plain["nbest"]) == 2
    with pytest.raises(ConfigError, match=r"no key `decoding\.bean`. Did you mean `decoding\.beam`"):
        run.predict(["abc"], bean=3)


def test_pieces_make_the_answer(run):
    assert "".join(run.stream("abc")) == "cba"


def test_a_part_a_file_and_rows_are_measured(run, reverse_run):
    part = run.evaluate()
    assert part.measurements["exact_match"].value > 0.9
    assert len(part.lengths) == 64
    file = run.evaluate(reverse_run.parent / "test.tsv")
    assert file.predictions == part.predictions
    rows = run.evaluate([("abc", "cba"), ("bad", "no")])
    assert rows.measurements["exact_match"].value == 0.5


def test_a_folder_is_all_a_run_needs(reverse_run, tmp_path):
    moved = shutil.copytree(reverse_run, tmp_path / "moved", symlinks=True)
    config = (moved / "config.yaml").read_text()
    run = weft.open(moved, data={"train": ["gone.tsv"], "test": ["gone.tsv"]})
    assert run.predict(["abc"]) == ["cba"]
    assert (moved / "config.yaml").read_text() == config
    with pytest.raises(DataError, match=r"There is no file `gone\.tsv`"):
        run.evaluate()


def test_a_test_file_is_read_without_the_training_file(reverse_run):
    run = weft.open(reverse_run, data={"train": ["gone.tsv"]})
    assert len(run.evaluate().lengths) == 64


def test_a_run_from_memory_needs_a_file_to_be_measured(tmp_path):
    path = train_classes(tmp_path).path
    with pytest.raises(DataError, match=r"There is no test data. Give a file: data\.test=FILE"):
        weft.open(path).evaluate()
    assert weft.open(path).predict(["x 1", "x 0"]) == ["odd", "even"]


def test_overrides_that_do_not_fit_the_weights_are_refused(reverse_run):
    with pytest.raises(ConfigError, match="does not fit the model as overridden"):
        weft.open(reverse_run, model={"width": 8})


def test_no_run_is_no_run(tmp_path):
    with pytest.raises(InputError, match=r"A run.s folder holds a config\.yaml, but "):
        weft.open(tmp_path)


def test_looking_changes_no_answer(run):
    before = run.predict(["abc", "dcb"], method="sample", seed=3)
    state = torch.get_rng_state()
    run.trace("abc")
    assert torch.equal(state, torch.get_rng_state())
    assert run.predict(["abc", "dcb"], method="sample", seed=3) == before


def test_weights_of_attention_sum_to_one(run):
    trace = run.trace("abcd")
    (layer,) = trace.attention()
    assert layer.shape == (1, len(trace.target), 4)
    assert (list(trace.source), "".join(trace.target)) == (list("abcd"), run.predict(["abcd"])[0])
    np.testing.assert_allclose(layer.sum(-1), 1, atol=1e-5)


def test_rows_in_memory_are_pairs(run):
    assert len(run.rows(pairs()).kinds) == 2
