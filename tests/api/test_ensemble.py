import numpy as np
import pytest
from tiny_runs import train_classes, train_reverse

import weft
from weft.api import Ensemble
from weft.core.errors import InputError


def test_probabilities_are_averaged(reverse_run, tmp_path):
    runs = [weft.open(reverse_run), weft.open(train_reverse(tmp_path))]
    joined = next(Ensemble(runs).predictions(["abc"])).plain["nbest"][0]
    assert joined["text"] == "cba"  # the trained member outweighs the new one
    alone = [score(run, "abc", "cba") for run in runs]
    assert min(alone) < joined["log_prob"] < max(alone)


def score(run, source, target):
    """Return log p(target | source) of one run, by teacher forcing."""
    evaluation = run.evaluate([(source, target)])
    return -np.log(evaluation.measurements["perplexity"].value) * (len(target) + 1)


def test_pieces_make_the_answer(reverse_run):
    both = Ensemble([weft.open(reverse_run), weft.open(reverse_run, "50")])
    assert "".join(both.stream("abc")) == both.predict(["abc"])[0]


def test_strangers_do_not_speak_as_one(reverse_run, tmp_path):
    other = weft.open(train_reverse(tmp_path, "data.vocabulary=7"))
    with pytest.raises(InputError, match=r"share task and vocabulary, but .* differ"):
        Ensemble([weft.open(reverse_run), other])
    with pytest.raises(InputError, match="does classify"):
        Ensemble([train_classes(tmp_path)])
    with pytest.raises(InputError, match="at least one run"):
        Ensemble([])
