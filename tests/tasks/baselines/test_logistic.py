"""Logistic regression against its definition."""

import numpy as np
import pytest
import torch

from weft.tasks.baselines.logistic import Grams, choose_grams, fit_logistic, gram_matrix, logistic_on_grams


def test_grams_of_words_and_characters():
    assert list(Grams("word", 2).of("a b c")) == [("a",), ("b",), ("c",), ("a", "b"), ("b", "c")]
    assert list(Grams("word", 1).of(["a b", "c"])) == [("a b",), ("c",)]
    assert ("\n", "a") in set(Grams("char", 2).of("ab"))
    assert ("b", "\n") in set(Grams("char", 2).of("ab"))


def test_rows_hold_each_gram_once_and_have_norm_one():
    grams = Grams("word", 1, least=2)
    columns = choose_grams(["a b a", "b c", "a"], grams)
    assert columns == {("a",): 0, ("b",): 1}
    matrix = gram_matrix(["a b a", "c", "b"], grams, columns).to_dense()
    half = 0.5**0.5
    assert matrix.tolist() == pytest.approx(np.array([[half, half], [0, 0], [0, 1]]))


def test_the_fit_is_the_minimum():
    torch.manual_seed(0)
    x, y, penalty = torch.randn(30, 4), np.arange(30) % 3, 0.01
    weight, bias = fit_logistic(x.to_sparse_coo(), y, 3, penalty)
    weight.requires_grad_(), bias.requires_grad_()
    loss = (
        torch.nn.functional.cross_entropy(x @ weight + bias, torch.from_numpy(y))
        + penalty * weight.square().sum()
    )
    loss.backward()
    assert weight.grad is not None
    assert weight.grad.abs().max() < 1e-3
    assert bias.grad is not None
    assert bias.grad.abs().max() < 1e-3


def test_pairs_of_words_tell_what_words_cannot():
    train = ["not good", "good not bad", "not bad", "bad not good"] * 5
    labels = ["no", "yes", "yes", "no"] * 5
    found = logistic_on_grams(train, labels, ["x not good", "x not bad"], Grams("word", 2))
    assert found == ["no", "yes"]
