"""The moving average against its formula, and whose weights are seen when."""

import pytest
import torch
from torch import nn

from weft.training.ema import Ema


def tied():
    model = nn.Sequential(nn.Linear(2, 2, bias=False), nn.Linear(2, 2, bias=False))
    model[1].weight = model[0].weight
    nn.init.constant_(model[0].weight, 1.0)
    return model


def step(model, value):
    with torch.no_grad():
        model[0].weight.fill_(value)


def test_it_is_the_formula_with_its_warm_start():
    model = tied()
    ema = Ema(model, 0.25)
    expected = 1.0
    for n, value in enumerate([2.0, 5.0, 3.0, 4.0], start=1):
        step(model, value)
        ema.update()
        decay = min(0.25, (1 + n) / (10 + n))  # 2/11, 3/12, 4/13 → 0.25
        expected = decay * expected + (1 - decay) * value
    weights = ema.state_dict()
    assert weights["0.weight"][0, 0].item() == pytest.approx(expected)
    assert weights["1.weight"] is weights["0.weight"]


def test_the_model_bears_it_inside_the_block_only():
    model = tied()
    ema = Ema(model, 0.5)
    step(model, 7.0)
    with ema.applied():
        assert model[1].weight[0, 0].item() == 1.0
    assert model[1].weight[0, 0].item() == 7.0


def test_without_decay_the_weights_stand_for_themselves():
    model = tied()
    ema = Ema(model, 0.0)
    step(model, 7.0)
    ema.update()
    with ema.applied():
        assert model[0].weight[0, 0].item() == 7.0
    assert ema.state_dict()["0.weight"][0, 0].item() == 7.0
    assert ema.save()["raw"] == []


def test_it_comes_back_from_a_save():
    model = tied()
    ema = Ema(model, 0.5)
    step(model, 3.0)
    ema.update()
    weights = {name: value.clone() for name, value in ema.state_dict().items()}
    saved = {"updates": ema.save()["updates"], "raw": [w.clone() for w in ema.save()["raw"]]}
    other = tied()
    again = Ema(other, 0.5)
    other.load_state_dict(weights)
    again.load(saved)
    assert other[0].weight[0, 0].item() == 3.0
    assert torch.equal(again.state_dict()["0.weight"], weights["0.weight"])
