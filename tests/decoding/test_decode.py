import pytest
import torch
from toy_stepper import BOS, EOS, ToyStepper

from weft.decoding import DecodingConfig, beam, decode, greedy, length_limits, sample

ROWS = torch.arange(6)
SEARCHES = {"greedy": greedy, "beam": beam, "sample": sample}


@pytest.mark.parametrize("method", SEARCHES)
def test_the_method_is_the_configured_one(method):
    config = DecodingConfig(method=method, beam=3, samples=2)
    limits = length_limits(ROWS, config)
    found = decode(ToyStepper(), ROWS, 6, config, BOS, EOS, limits)
    assert found == SEARCHES[method](ToyStepper(), ROWS, 6, config, BOS, EOS, limits)
    assert [len(row) for row in found] == [2 if method == "sample" else 1] * 6


@pytest.mark.parametrize("method", SEARCHES)
def test_no_graph_is_kept(method, monkeypatch):
    toy, kept = ToyStepper(), []
    step = toy.step
    monkeypatch.setattr(toy, "step", lambda *given: kept.append(torch.is_grad_enabled()) or step(*given))
    decode(toy, ROWS, 6, DecodingConfig(method=method, max_length=4), BOS, EOS)
    assert set(kept) == {False}


@pytest.mark.parametrize("method", SEARCHES)
def test_no_rows(method):
    assert decode(ToyStepper(), ROWS[:0], 0, DecodingConfig(method=method), BOS, EOS) == []
