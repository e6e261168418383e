"""The three recurrent ops: the reference against torch.nn, the fast path against the reference."""

import pytest
import torch
from torch import nn

from weft import ops
from weft.core.errors import ConfigError, InputError
from weft.core.sequences import Sequences
from weft.ops.weights import RecurrentWeights, check_lengths

GATES = {"rnn": 1, "relu": 1, "lstm": 4, "gru": 3, "gru_before": 3}
LAYERS = {"rnn": nn.RNN, "relu": nn.RNN, "lstm": nn.LSTM, "gru": nn.GRU}
OPTIONS = {"relu": {"activation": "relu"}, "gru_before": {"reset": "before"}}
FAST = {kind: "loop" if kind == "gru_before" else "torch" for kind in GATES}
TOLERANCE = 1e-10  # float64


def draw(kind: str, inputs: int, units: int, bias: bool = True) -> RecurrentWeights:
    """Draw weights in float64 that ask for gradients."""
    rows = GATES[kind] * units
    shapes = [(rows, inputs), (rows, units), *([(rows,), (rows,)] if bias else [])]
    bound = units**-0.5
    return RecurrentWeights(
        *(torch.empty(s, dtype=torch.float64).uniform_(-bound, bound).requires_grad_() for s in shapes)
    )


def draw_state(kind: str, batch: int, units: int):
    state = [torch.randn(batch, units, dtype=torch.float64).requires_grad_() for _ in range(2)]
    return tuple(state) if kind == "lstm" else state[0]


def leaves(state) -> list[torch.Tensor]:
    return list(state) if isinstance(state, tuple) else [state]


def run(kind: str, x, w, state, lengths, reverse, backend, **options):
    op = {"rnn": ops.rnn, "relu": ops.rnn, "lstm": ops.lstm, "gru": ops.gru, "gru_before": ops.gru}[kind]
    return op(x, w, state, lengths, reverse, backend=backend, **OPTIONS.get(kind, {}), **options)


def gradients(y, final, inputs) -> list[torch.Tensor]:
    """Return the gradients of one fixed scalar of outputs and final states."""
    torch.manual_seed(7)
    outputs = [y, *leaves(final)]
    scalar = sum((o * torch.randn(o.shape, dtype=o.dtype)).sum() for o in outputs)
    return list(torch.autograd.grad(scalar, inputs, allow_unused=True))


def hold(left: list, right: list) -> None:
    """Hold two lists of tensors against each other; an absent gradient is zero."""
    for one, other in zip(left, right, strict=True):
        one = torch.zeros_like(other) if one is None else one
        assert one.shape == other.shape
        error = (one - other).abs().max().item()
        assert error <= TOLERANCE


@pytest.mark.parametrize("kind", LAYERS)
@pytest.mark.parametrize("bias", [True, False])
def test_the_reference_is_torch_nn_with_every_gradient(kind, bias):
    x = torch.randn(3, 6, 4, dtype=torch.float64, requires_grad=True)
    options = {"nonlinearity": "relu"} if kind == "relu" else {}
    layer = LAYERS[kind](4, 5, bias=bias, batch_first=True, dtype=torch.float64, **options)
    w, start = RecurrentWeights(*layer.parameters()), draw_state(kind, 3, 5)
    lifted = tuple(leaf.unsqueeze(0) for leaf in leaves(start))
    want, state = layer(x, lifted if kind == "lstm" else lifted[0])
    state = tuple(leaf[0] for leaf in leaves(state))
    got, final = run(kind, x, w, start, None, False, "reference")
    hold([got, *leaves(final)], [want, *state])
    inputs = [x, *layer.parameters(), *leaves(start)]
    hold(gradients(got, final, inputs), gradients(want, state, inputs))


def ragged_lengths(batch: int, size: int) -> torch.Tensor:
    """Return a full row first, then an empty one and one between."""
    return torch.tensor([size, 0, (size + 1) // 2][:batch])


def check_fast(
    kind: str, size: int, batch: int, units: int, ragged: bool, reverse: bool, state: bool
) -> None:
    """Hold the fast path against the reference; NaN stands in all padding, and nobody may see it."""
    w = draw(kind, 3, units, bias=bool(size % 2))
    data = torch.randn(batch, size, 3, dtype=torch.float64)
    lengths = ragged_lengths(batch, size) if ragged else None
    if lengths is not None:
        data = Sequences(data, lengths).fill(torch.nan).data
    data.requires_grad_()
    start = draw_state(kind, batch, units) if state else None
    inputs = [data, *(leaf for leaf in w if leaf is not None), *(leaves(start) if state else [])]
    want, final = run(kind, data, w, start, lengths, reverse, "reference")
    got, last = run(kind, data, w, start, lengths, reverse, FAST[kind])
    hold([got, *leaves(last)], [want, *leaves(final)])
    assert torch.isfinite(want).all()
    hold(gradients(got, last, inputs), gradients(want, final, inputs))


PAIRWISE = [
    # size, batch, units, ragged, reverse, state
    (1, 1, 5, False, False, False),
    (1, 3, 16, True, True, True),
    (2, 3, 33, True, False, True),
    (2, 1, 16, False, True, False),
    (63, 3, 5, True, False, False),
    (63, 1, 33, False, True, True),
    (64, 3, 16, False, True, True),
    (64, 3, 33, True, True, False),
    (65, 3, 5, True, True, True),
    (65, 1, 16, False, False, False),
    (100, 3, 33, True, False, False),
    (100, 3, 5, False, True, True),
    (64, 1, 5, True, False, True),
]
GRID = [
    (size, batch, units, ragged, reverse, state)
    for size in (1, 2, 63, 64, 65, 100)
    for batch in (1, 3)
    for units in (5, 16, 33)
    for ragged in (False, True)
    for reverse in (False, True)
    for state in (False, True)
]


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("size", "batch", "units", "ragged", "reverse", "state"), PAIRWISE)
def test_the_fast_path_is_the_reference(kind, size, batch, units, ragged, reverse, state):
    check_fast(kind, size, batch, units, ragged, reverse, state)


@pytest.mark.long
@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize(("size", "batch", "units", "ragged", "reverse", "state"), GRID)
def test_the_fast_path_is_the_reference_everywhere(kind, size, batch, units, ragged, reverse, state):
    check_fast(kind, size, batch, units, ragged, reverse, state)


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("absent", ["b_ih", "b_hh"])
def test_one_bias_may_be_absent(kind, absent):
    w = draw(kind, 3, 5)._replace(**{absent: None})
    x = torch.randn(2, 4, 3, dtype=torch.float64, requires_grad=True)
    inputs = [x, *(leaf for leaf in w if leaf is not None)]
    start = draw_state(kind, 2, 5)
    want, final = run(kind, x, w, start, None, False, "reference")
    got, last = run(kind, x, w, start, None, False, FAST[kind])
    hold([got, *leaves(last)], [want, *leaves(final)])
    hold(gradients(got, last, inputs), gradients(want, final, inputs))


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("fast", [False, True])
def test_rows_do_not_know_each_other(kind, fast):
    backend = FAST[kind] if fast else "reference"
    w = draw(kind, 3, 5)
    x = Sequences(torch.randn(4, 7, 3, dtype=torch.float64), torch.tensor([3, 7, 0, 1]))
    for reverse in (False, True):
        y, final = run(kind, x.data, w, None, x.lengths, reverse, backend)
        for row, rows in enumerate(x.unpad()):
            alone, last = run(kind, rows.unsqueeze(0), w, None, None, reverse, backend)
            hold([y[row : row + 1, : len(rows)].sum(), *(s[row] for s in leaves(final))],
                 [alone.sum(), *(s[0] for s in leaves(last))])  # fmt: skip
            assert (y[row, len(rows) :] == 0).all()


@pytest.mark.parametrize("kind", GATES)
def test_a_state_that_grows_leaves_padding_alone(kind):
    """A recurrence that doubles its state would overflow in 200 padded steps of float32."""
    w = RecurrentWeights(*(leaf.detach().float() for leaf in draw(kind, 3, 4)))
    w_hh = (torch.eye(4).repeat(GATES[kind], 1) * 2).requires_grad_()
    w = w._replace(w_hh=w_hh, w_ih=w.w_ih.abs())
    x = torch.cat([torch.rand(2, 3, 3), torch.zeros(2, 200, 3)], dim=1)
    y, final = run(kind, x, w, None, torch.tensor([3, 2]), False, FAST[kind])
    want, _ = run(kind, x[:, :3], w, None, torch.tensor([3, 2]), False, "reference")
    assert torch.allclose(y[:, :3], want, rtol=1e-5)
    (gradient,) = torch.autograd.grad(y.sum() + sum(s.sum() for s in leaves(final)), w_hh)
    assert torch.isfinite(gradient).all()


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("fast", [False, True])
def test_no_steps_keep_the_state(kind, fast):
    backend = FAST[kind] if fast else "reference"
    w, start = draw(kind, 3, 5), draw_state(kind, 2, 5)
    y, final = run(kind, torch.zeros(2, 0, 3, dtype=torch.float64), w, start, None, False, backend)
    assert y.shape == (2, 0, 5)
    assert all(map(torch.equal, leaves(final), leaves(start)))


def test_the_concatenated_form_is_the_sum_form():
    """H_t = tanh([X; H] [W_xh; W_hh] + b_h) is tanh(X W_xh + H W_hh + b_h)."""
    w, x = draw("rnn", 4, 5), torch.randn(3, 4, dtype=torch.float64)
    h = torch.randn(3, 5, dtype=torch.float64)
    assert w.b_ih is not None
    assert w.b_hh is not None
    joined = torch.cat([x, h], dim=1) @ torch.cat([w.w_ih.T, w.w_hh.T], dim=0)
    want = torch.tanh(joined + w.b_ih + w.b_hh)
    hold([ops.rnn_step(x, h, w)], [want])


def column(*rows: float) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64).unsqueeze(1)


ONE = torch.ones(1, 1, dtype=torch.float64)


def test_an_lstm_step_by_hand():
    """x = 1, h = 0.5, c = 2; pre-activations i = ln 3, f = 0, g = atanh 0.6, o = -ln 3.

    i = 3/4, f = 1/2, g = 0.6, o = 1/4, so c = 0.5 * 2 + 0.75 * 0.6 = 1.45, h = tanh(1.45) / 4.
    """
    log3, atanh = 1.0986122886681098, 0.6931471805599453
    w = RecurrentWeights(
        column(log3 - 1, 0.25, atanh, -log3 + 0.5), column(2, -0.5, 0, 0),
        torch.tensor([0, 0.5, 0, -1], dtype=torch.float64),
        torch.tensor([0, -0.5, 0, 0.5], dtype=torch.float64),
    )  # fmt: skip
    h, c = ops.lstm_step(ONE, (ONE * 0.5, ONE * 2), w)
    assert c.item() == pytest.approx(1.45, abs=1e-12)
    assert h.item() == pytest.approx(0.25 * 0.8956929, abs=1e-7)  # tanh(1.45)
    assert [round(gate.item(), 6) for gate in ops.lstm_gates(ONE, ONE * 0.5, w)] == [0.75, 0.5, 0.6, 0.25]


def test_a_gru_step_by_hand():
    """x = 1, h = 2; r = 1/4, z = 3/4.

    after   n = tanh(0.1 + r (0.3 h + 0.4)) = tanh(0.1 + 0.25)      = tanh(0.35)
    before  n = tanh(0.1 + 0.3 (r h) + 0.4) = tanh(0.1 + 0.15 + 0.4) = tanh(0.65)
    h'      = 0.75 * 2 + 0.25 n
    """
    log3 = 1.0986122886681098
    w = RecurrentWeights(
        column(-log3, log3, 0.1), column(0, 0, 0.3), None, torch.tensor([0, 0, 0.4], dtype=torch.float64)
    )
    w = w._replace(b_ih=torch.zeros(3, dtype=torch.float64))
    after = ops.gru_step(ONE, ONE * 2, w).item()
    before = ops.gru_step(ONE, ONE * 2, w, "before").item()
    assert after == pytest.approx(1.5 + 0.25 * 0.3363755, abs=1e-7)  # tanh(0.35)
    assert before == pytest.approx(1.5 + 0.25 * 0.5716700, abs=1e-7)  # tanh(0.65)


@pytest.mark.parametrize("reset", ["after", "before"])
def test_gradcheck_of_both_resets(reset):
    w, x = draw("gru", 2, 3), torch.randn(2, 3, 2, dtype=torch.float64, requires_grad=True)
    h, lengths = draw_state("gru", 2, 3), torch.tensor([3, 1])

    def op(x, h, *w):
        return ops.gru(x, RecurrentWeights(*w), h, lengths, reset=reset, backend="reference")

    assert torch.autograd.gradcheck(op, (x, h, *w))


def test_the_resets_agree_where_the_gate_is_open():
    w, x = draw("gru", 2, 3), torch.randn(2, 5, 2, dtype=torch.float64)
    open_gate = torch.cat([torch.full((3,), 50.0), torch.zeros(6)]).double()
    w = w._replace(b_ih=open_gate)
    hold([ops.gru(x, w, reset="before")[0]], [ops.gru(x, w, reset="after")[0]])
    w = w._replace(b_ih=torch.zeros(9, dtype=torch.float64))
    assert not torch.allclose(ops.gru(x, w, reset="before")[0], ops.gru(x, w, reset="after")[0])


@pytest.mark.parametrize("reverse", [False, True])
def test_reset_before_is_ragged_and_reverses(reverse):
    w, x = draw("gru", 3, 4), torch.randn(3, 6, 3, dtype=torch.float64)
    rows = Sequences(x, torch.tensor([6, 0, 4]))
    y, h = ops.gru(rows.fill(torch.nan).data, w, None, rows.lengths, reverse, "before")
    turned = rows.reverse() if reverse else rows
    want, last = ops.gru(turned.data, w, None, rows.lengths, False, "before")
    want = Sequences(want, rows.lengths)
    hold([y, h], [(want.reverse() if reverse else want).data, last])


@pytest.mark.parametrize("kind", LAYERS)
def test_a_backend_that_does_not_exist_is_refused(kind):
    with pytest.raises(ConfigError, match=r"There is no backend `torc`. Did you mean `torch`\?"):
        run(kind, torch.zeros(1, 1, 3).double(), draw(kind, 3, 2), None, None, False, "torc")


def test_a_backend_by_name_never_falls_back():
    with pytest.raises(ConfigError, match="There is no backend `torch`"):
        ops.gru(torch.zeros(1, 1, 3).double(), draw("gru", 3, 2), reset="before", backend="torch")


def test_a_reset_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigError, match=r"`reset` must be `after` \(torch\) or `before` \(the lectures\), "
    ):
        ops.gru(torch.zeros(1, 1, 3).double(), draw("gru", 3, 2), reset="never")


def test_an_activation_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match="`activation` must be `tanh` or `relu`, but is `sigmoid`"):
        ops.rnn(torch.randn(2, 3, 4).double(), draw("rnn", 4, 5), activation="sigmoid")


@pytest.mark.parametrize("kind", GATES)
@pytest.mark.parametrize("backend", ["auto", "reference"])
def test_shapes_that_do_not_fit_are_refused(kind, backend):
    """torch's LSTM kernel reads beyond weights and states that are too small."""
    x, w = torch.randn(2, 3, 4).double(), draw(kind, 4, 5)
    with pytest.raises(InputError, match=r"`x` must be \(B, T, 6\), as wide as `w_ih` takes it, but is"):
        run(kind, x, draw(kind, 6, 5), None, None, False, backend)
    other = draw("rnn" if GATES[kind] > 1 else "gru", 4, 5)
    with pytest.raises(
        InputError, match=rf"`w_ih` must be \({5 * GATES[kind]}, 4\) for {GATES[kind]} gates of"
    ):
        run(kind, x, other, None, None, False, backend)
    with pytest.raises(InputError, match=r"`state` must be \(2, 5\) for . gates .* but is \(2, 6\)"):
        run(kind, x, w, draw_state(kind, 2, 6), None, False, backend)
    with pytest.raises(InputError, match=r"`lengths` must lie between 0 and the 3 steps there are, .* is 4"):
        run(kind, x, w, None, torch.tensor([4, 1]), False, backend)


@pytest.mark.parametrize(
    ("lengths", "message"),
    [
        ([1, 2], r"`lengths` must be an int64 tensor \(2,\), one a row, but is \[1, 2\]"),
        (torch.ones(2), r"but is torch.float32 \(2,\)"),
        (torch.ones(3, dtype=torch.int64), r"but is torch.int64 \(3,\)"),
        (torch.tensor([0, -2]), "must lie between 0 and the 5 steps there are, but one is -2"),
        (torch.tensor([6, 2]), "must lie between 0 and the 5 steps there are, but one is 6"),
    ],
)
def test_lengths_that_do_not_fit_are_refused(lengths, message):
    with pytest.raises(InputError, match=message):
        check_lengths(lengths, 2, 5)


def test_shapes_that_do_not_fit_are_refused_before_the_launch_of_both_directions(monkeypatch):
    monkeypatch.setattr("weft.ops.layer.runs_fused", lambda *a: True)
    monkeypatch.delattr("weft.ops.layer.fused_layer")
    x, weights = torch.randn(2, 3, 4).double(), [draw("lstm", 4, 5), draw("lstm", 4, 5)]
    with pytest.raises(InputError, match=r"`state` must be \(2, 5\) for 4 gates .* but is \(2, 6\)"):
        ops.recurrent_layer("lstm", x, weights, [None, draw_state("lstm", 2, 6)])
