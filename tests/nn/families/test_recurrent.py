"""What rnn, lstm and gru share: initial values, dropout, residuals, the lectures' attention forms."""

import math
import sys

import pytest
import torch

from weft.core.sequences import Sequences
from weft.core.taps import listen
from weft.nn.families import AttentionSpec, families
from weft.ops import fused
from weft.ops import layer as layers

GATES = {"rnn": 1, "lstm": 4, "gru": 3}
W = 6


def make(family: str, width: int = W, spec: AttentionSpec | None = None, **options):
    entry = families[family]
    config = entry.Config(**{"dropout": 0.0, **options})
    return entry.backbone(width, config, spec).double()


def rows(*lengths: int) -> Sequences:
    return Sequences(torch.randn(len(lengths), max(lengths), W).double(), torch.tensor(lengths))


@pytest.mark.parametrize("family", GATES)
def test_recurrent_matrices_begin_orthogonal(family):
    layer = make(family).layers[0].weights
    for gate in layer.weight_hh.chunk(GATES[family]):
        assert torch.allclose(gate @ gate.T, torch.eye(W).double(), atol=1e-5)


@pytest.mark.parametrize("family", GATES)
def test_or_as_the_identity_or_uniform(family):
    for gate in make(family, init="identity").layers[0].weights.weight_hh.chunk(GATES[family]):
        assert torch.equal(gate, torch.eye(W).double())
    uniform = make(family, 64, init="uniform").layers[0].weights.weight_hh
    assert 0.12 < uniform.abs().max() <= 1 / 8


def test_forget_gates_begin_open():
    bias = make("lstm", forget_bias=2.5).layers[1].weights.bias_ih
    assert [gate.tolist() for gate in bias.chunk(4)] == [[0] * W, [2.5] * W, [0] * W, [0] * W]


def test_chrono_biases_span_the_memory():
    """f = log u with u in [1, T - 1], i = -f: the forget gate's time 1 / (1 - f) = 1 + u lies in [2, T]."""
    i, f, g, o = make("lstm", 500, chrono=50).layers[0].weights.bias_ih.chunk(4)
    memory = 1 / (1 - torch.sigmoid(f))
    assert 2 <= memory.min() < 4
    assert 46 < memory.max() <= 50 + 1e-4
    assert torch.equal(i, -f)
    assert not g.any()
    assert not o.any()


@pytest.mark.parametrize("family", GATES)
def test_weight_dropout_is_one_draw_a_pass(family):
    network, x = make(family, 20, layers=1, weight_dropout=0.5).train(), torch.randn(1, 5, 20).double()
    layer = network.layers[0].weights
    drawn = layer.draw().w_hh
    dropped = (drawn == 0).double().mean()
    assert 0.3 < dropped < 0.7
    kept = drawn != 0
    assert torch.allclose(drawn[kept], 2 * layer.weight_hh[kept])
    assert not torch.equal(network(Sequences.full(x))[0].data, network(Sequences.full(x))[0].data)
    network.eval()
    assert torch.equal(layer.draw().w_hh, layer.weight_hh)


@pytest.mark.parametrize("locked", [True, False])
def test_locked_dropout_reaches_the_layers(locked):
    """The second layer is made to copy its input, so what was dropped can be read."""
    network = make("rnn", 40, layers=2, dropout=0.5, locked=locked, activation="relu").train()
    first, second = (layer.weights for layer in network.layers)
    for weights in (first, second):
        weights.weight_ih.data = torch.eye(40).double()
        weights.weight_hh.data.zero_()
    y = network(Sequences.full(torch.ones(2, 6, 40).double()))[0].data
    assert set(y.unique().tolist()) == {0.0, 2.0}
    assert torch.equal(y, y[:, :1].expand_as(y)) is locked


@pytest.mark.parametrize("family", GATES)
def test_residuals_add_each_layers_input_from_the_second_on(family):
    plain, residual = make(family, layers=2), make(family, layers=2, residual=True)
    residual.load_state_dict(plain.state_dict())
    shallow = make(family, layers=1)
    shallow.load_state_dict({k: v for k, v in plain.state_dict().items() if k.startswith("layers.0")})
    x = rows(5, 3)
    want = plain(x)[0].data + shallow(x)[0].data
    assert torch.allclose(residual(x)[0].data, want, atol=1e-12)


@pytest.mark.parametrize("family", GATES)
def test_a_backbone_is_torch_nn_with_the_same_weights(family):
    network, kind = make(family, layers=2), {"rnn": "RNN", "lstm": "LSTM", "gru": "GRU"}[family]
    theirs = getattr(torch.nn, kind)(W, W, 2, batch_first=True, dtype=torch.float64)
    for i, layer in enumerate(network.layers):
        for name, leaf in layer.weights.named_parameters():
            getattr(theirs, f"{name}_l{i}").data.copy_(leaf)
    x = torch.randn(2, 5, W).double()
    assert torch.allclose(network(Sequences.full(x))[0].data, theirs(x)[0], atol=1e-12)


@pytest.mark.parametrize("family", GATES)
def test_an_encoder_reads_both_ways_with_half_the_width_each(family):
    entry = families[family]
    network = entry.encoder(7, entry.Config(layers=1, dropout=0.0), True).double()
    x = Sequences(torch.randn(2, 5, 7).double(), torch.tensor([5, 3]))
    y = network(x)
    summary = network.summarise(y)
    assert summary.shape == (2, 7)
    assert torch.equal(summary[1, :4], y.data[1, 2, :4])  # forwards: the last valid output
    assert torch.equal(summary[:, 4:], y.data[:, 0, 4:])  # backwards: the first
    again = network(x.rows(torch.tensor([1])).with_data(x.data[1:, :3]))
    assert torch.allclose(again.data[0], y.data[1, :3], atol=1e-12)


@pytest.mark.parametrize(("width", "launches"), [(6, 2), (7, 0)])
@pytest.mark.parametrize("family", GATES)
def test_directions_of_one_size_run_side_by_side_where_a_kernel_serves(monkeypatch, family, width, launches):
    entry, asked = families[family], []
    network = entry.encoder(width, entry.Config(layers=2, dropout=0.0), True).double()
    x = Sequences(torch.randn(2, 5, width).double(), torch.tensor([5, 3]))
    want = network(x).data

    def launch(cell, x, weights, states, lengths, ways):
        asked.append(ways)
        y = [layers.CELLS[cell](x, w, None, lengths, d == 1)[0] for d, w in enumerate(weights)]
        return torch.cat(y, dim=2), [(y[0][:, 0],), (y[1][:, 0],)]

    monkeypatch.setattr(layers, "fused_layer", launch)
    monkeypatch.setattr(fused, "has_kernels", lambda x: True)
    monkeypatch.setattr(fused, "_refusal", lambda *a: None)
    for cell in ("rnn", "lstm", "gru"):
        one_way = sys.modules[f"weft.ops.{cell}"]  # weft.ops has a function of that name
        monkeypatch.setattr(one_way, "choose_recurrent", lambda *a: "reference")
    assert torch.allclose(network(x).data, want, atol=1e-12)
    assert asked == ["both"] * launches


@pytest.mark.parametrize("family", GATES)
def test_a_decoder_starts_from_the_summary(family):
    network = make(family, spec=AttentionSpec("none"))
    summary = torch.randn(2, W).double()
    memory = network.prepare(rows(3, 2), summary)
    state = network.init_state(4, memory=memory)  # two lanes a source row
    for layer, bridge, begun in zip(network.layers, network.bridges, state.layers, strict=True):
        want = torch.tanh(summary @ bridge.weight.T + bridge.bias).repeat_interleave(2, dim=0)
        assert torch.allclose(layer.output(begun), want, atol=1e-12)
    if family == "lstm":
        assert not state.layers[0].c.any()


@pytest.mark.parametrize("family", GATES)
def test_feed_step_is_the_lectures_equations_written_out(family):
    """context = attend(h_{t-1}); h_t = cell([x_t; context], h_{t-1}); y_t = tanh(W [h_t; context])."""
    network = make(family, layers=1, spec=AttentionSpec("additive"), feed="step")
    source, x = rows(4, 2), rows(3, 3)
    memory = network.prepare(source, source.mean())
    got = network(x, None, memory)[0].data
    layer, reader = network.layers[0], network.reader
    state, outputs = network.init_state(2, memory=memory).layers[0], []
    for t in range(3):
        query, context = layer.output(state), []
        for row, keys in zip(query, source.unpad(), strict=True):
            p = reader.attention.params()
            scores = torch.stack([p.w @ torch.tanh(p.w_q @ row + p.w_k @ key) for key in keys])
            context.append(torch.softmax(scores, 0) @ keys)
        context = torch.stack(context)
        h, state = layer.step(torch.cat([x.data[:, t], context], 1), layer.draw_weights(), state)
        outputs.append(torch.tanh(torch.cat([h, context], 1) @ reader.readout.weight.T + reader.readout.bias))
    assert torch.allclose(got, torch.stack(outputs, 1), atol=1e-10)


@pytest.mark.parametrize("feed", ["step", "output"])
def test_both_feeds_tap_their_weights(feed):
    network = make("lstm", spec=AttentionSpec("multihead", 2), feed=feed)
    source, x = rows(4, 2), rows(3, 3)
    with listen() as trace:
        network(x, None, network.prepare(source, source.mean()))
    weights = torch.cat(trace["cross_attention"], dim=2)
    assert weights.shape == (2, 2, 3, 4)
    assert math.isclose(float(weights.sum()), 2 * 2 * 3, rel_tol=1e-9)
