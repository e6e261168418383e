import importlib

import pytest
import torch
from explained import settings_of, task_and_data
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from weft.core.sequences import Sequences
from weft.explain import Flops, count_flops, observe
from weft.nn.families import families


def counted(model, run):
    """Return what torch's own counter sees, forward and backward."""
    with sdpa_kernel(SDPBackend.MATH), FlopCounterMode(display=False) as counter:
        loss = run()
        forward = counter.get_total_flops()
        loss.backward()
        return Flops(forward, counter.get_total_flops() - forward)


def both_counts(lengths=(6, 6, 6), **values):
    """Return our count and torch's on one batch of made-up data."""
    settings = settings_of(**values)
    task, data = task_and_data(settings, list(lengths))
    model, feed = task.build(settings.model).train(), task.feed(data, 0)
    batch = feed.batch(0, 0)

    def run():
        return task.loss(model, batch, None, 0.0).total

    ours = sum(count_flops(model, observe(model, run)).values(), Flops())
    return ours, counted(model, run)


TRANSFORMERS = [
    {"task": {"name": "translate"}},
    {"task": {"name": "translate"}, "model": {"positions": "rotary", "norm": "post", "feedforward": 24}},
    {"task": {"name": "translate"}, "model": {"position_mode": "concat", "tied": False}},
    {"task": {"name": "translate"}, "model": {"attention": "bilinear"}},
    {"task": {"name": "language"}, "batch": {"rows": 2}},
]


@pytest.mark.parametrize("values", TRANSFORMERS)
@pytest.mark.parametrize("lengths", [(6, 6, 6), (9, 2, 5)])
def test_a_transformer_is_counted_as_torch_counts_it(values, lengths):
    model = {"family": "transformer", "width": 16, "layers": 2, **values.get("model", {})}
    ours, theirs = both_counts(lengths, **{**values, "model": model})
    assert ours == theirs


@pytest.mark.parametrize("attention", ["additive", "concat", "dot", "multihead", "none"])
@pytest.mark.parametrize("feed", ["step", "output"])
def test_a_recurrent_model_is_counted_as_torch_counts_its_reference(attention, feed, monkeypatch):
    of_gru = importlib.import_module("weft.ops.gru")
    monkeypatch.setattr(of_gru, "choose_recurrent", lambda *a: "reference")  # what torch can count
    model = {
        "family": "gru",
        "reset": "before",
        "width": 8,
        "layers": 2,
        "feed": feed,
        "attention": attention,
    }
    ours, theirs = both_counts((8, 8, 8), model=model)
    pairs = 3 * 9 * 8 if attention in ("additive", "concat") else 0  # torch does not count w . tanh(...)
    assert ours.forward == theirs.forward + 2 * 8 * pairs
    assert ours.backward == pytest.approx(theirs.backward, rel=0.05)  # nobody wants h_0's gradient


def test_a_tcn_is_counted_as_torch_counts_it():
    model = {"family": "tcn", "width": 8, "layers": 2, "attention": "dot"}
    ours, theirs = both_counts((8, 8, 8), model=model)
    assert ours.forward == pytest.approx(theirs.forward, rel=0.1)  # looking both ways runs past the end
    assert ours.forward <= theirs.forward


def test_one_recurrent_layer_by_hand():
    lstm = families["lstm"]
    network = torch.nn.ModuleDict({"backbone": lstm.backbone(8, lstm.Config(layers=1), None)})
    x = Sequences.full(torch.zeros(3, 5, 8))
    flops = count_flops(network, observe(network, lambda: network["backbone"](x)))
    matrices = 2 * (32 * 8 + 32 * 8)
    assert sum(flops.values(), Flops()) == Flops(15 * matrices, 2 * 15 * matrices)
