"""The drop-in layers against torch.nn over the constructor's arguments, the state_dict loaded both ways."""

import subprocess
import sys

import pytest
import torch
from torch import nn
from torch.func import functional_call, grad, jvp, vmap
from torch.nn.utils.rnn import PackedSequence, pack_padded_sequence, pad_packed_sequence

import weft.nn
from weft import ops
from weft.core.errors import ConfigError, InputError
from weft.ops.weights import RecurrentWeights

KINDS = ("RNN", "LSTM", "GRU")
T, D, U = 6, 4, 5


def make(kind: str, **options):
    """Return our layer and torch's with the same weights, each loaded from the other's state_dict."""
    options = {"dtype": torch.float64, **options}
    ours, theirs = getattr(weft.nn, kind)(D, U, **options), getattr(nn, kind)(D, U, **options)
    assert list(ours.state_dict()) == list(theirs.state_dict())
    theirs.load_state_dict(ours.state_dict())
    ours.load_state_dict(theirs.state_dict())
    return ours, theirs


def flat(outputs) -> list[torch.Tensor]:
    """Return every tensor of a layer's answer."""
    if isinstance(outputs, PackedSequence):
        return [outputs.data, outputs.batch_sizes]
    if isinstance(outputs, tuple):
        return [leaf for part in outputs for leaf in flat(part)]
    return [outputs]


def start(kind: str, layer, batch: int | None, requires_grad: bool = False):
    """Draw an initial state."""
    rows = layer.num_layers * (2 if layer.bidirectional else 1)
    widths = (layer.proj_size or U, U) if kind == "LSTM" else (U,)
    shapes = [(rows, width) if batch is None else (rows, batch, width) for width in widths]
    drawn = tuple(torch.randn(s, dtype=torch.float64, requires_grad=requires_grad) for s in shapes)
    return drawn if kind == "LSTM" else drawn[0]


def hold(got, want, tolerance: float = 1e-10) -> None:
    for one, other in zip(flat(got), flat(want), strict=True):
        assert one.shape == other.shape
        error = (one - other).abs().max().item() if one.numel() else 0
        assert error <= tolerance


def weight_gradients(layer, y: torch.Tensor, state) -> list[torch.Tensor]:
    torch.manual_seed(3)
    layer.zero_grad()
    leaves = [y, *flat(state)]
    sum((leaf * torch.randn(leaf.shape, dtype=torch.float64)).sum() for leaf in leaves).backward()
    return [p.grad for p in layer.parameters()]


GRID = [
    # num_layers, bias, batch_first, dropout, bidirectional, input form, state given
    (1, True, False, 0.0, False, "padded", False),
    (2, False, True, 0.0, True, "padded", True),
    (3, True, True, 0.5, False, "packed", True),
    (2, True, False, 0.0, True, "packed", False),
    (1, False, True, 0.0, True, "single", True),
    (2, True, False, 0.5, False, "single", False),
    (1, True, True, 0.0, False, "sorted", True),
    (3, False, False, 0.0, True, "sorted", False),
    (2, False, False, 0.5, True, "padded", True),
]


def draw_input(form: str, batch_first: bool):
    if form == "single":
        return torch.randn(T, D, dtype=torch.float64)
    x = torch.randn(3, T, D, dtype=torch.float64)
    x = x if batch_first else x.transpose(0, 1)
    if form == "padded":
        return x
    lengths = [6, 4, 4] if form == "sorted" else [2, 6, 4]
    return pack_padded_sequence(x, torch.tensor(lengths), batch_first, enforce_sorted=form == "sorted")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layers", "bias", "first", "dropout", "both", "form", "given"), GRID)
def test_the_answer_is_torchs(kind, layers, bias, first, dropout, both, form, given):
    options = {"num_layers": layers, "bias": bias, "batch_first": first, "bidirectional": both}
    ours, theirs = make(kind, **options, dropout=dropout)
    ours, theirs = (ours, theirs) if dropout == 0 else (ours.eval(), theirs.eval())
    x = draw_input(form, first)
    state = start(kind, ours, None if form == "single" else 3) if given else None
    got, want = ours(x, state), theirs(x, state)
    assert type(got[0]) is type(want[0])
    hold(got, want)
    data = (lambda y: y.data) if form in ("packed", "sorted") else (lambda y: y)
    one = weight_gradients(ours, data(got[0]), got[1])
    hold(tuple(one), tuple(weight_gradients(theirs, data(want[0]), want[1])))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("layers", "bias", "first", "dropout", "both", "form", "given"), GRID)
def test_lengths_that_are_full_change_nothing(kind, layers, bias, first, dropout, both, form, given):
    """Where lengths are given weft's own path answers."""
    options = {"num_layers": layers, "bias": bias, "batch_first": first, "bidirectional": both}
    ours, theirs = make(kind, **options)
    batch = None if form == "single" else 3
    x = draw_input("single" if form == "single" else "padded", first)
    state = start(kind, ours, batch) if given else None
    got, want = ours(x, state, torch.full((batch or 1,), T)), theirs(x, state)
    hold(got, want)
    hold(tuple(weight_gradients(ours, *got)), tuple(weight_gradients(theirs, *want)))


WRONG = {  # shapes of the input and of the state
    "width": ((T, 3, D + 1), None),
    "dimensions": ((1, T, 3, D), None),
    "one dimension": ((D,), None),
    "one layer too many": ((T, 3, D), (3, 3, U)),
    "no layers": ((T, 3, D), (0, 3, U)),
    "other batch": ((T, 3, D), (2, 4, U)),
    "one row for all": ((T, 3, D), (2, 1, U)),
    "other units": ((T, 3, D), (2, 3, U + 1)),
    "state without batch": ((T, 3, D), (2, U)),
    "state with batch": ((T, D), (2, 3, U)),
}


@pytest.mark.parametrize("kind", [*KINDS, "before"])
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_shapes_are_refused_as_torch_does(kind, wrong):
    kind, options = ("GRU", {"reset": "before"}) if kind == "before" else (kind, {})
    ours = getattr(weft.nn, kind)(D, U, 2, **options)
    theirs = getattr(nn, kind)(D, U, 2)
    x, shape = torch.randn(WRONG[wrong][0]), WRONG[wrong][1]
    h = None if shape is None else torch.randn(shape)
    state = (h, h) if kind == "LSTM" and h is not None else h
    with pytest.raises((RuntimeError, ValueError)) as want:
        theirs(x, state)
    with pytest.raises((RuntimeError, ValueError)) as got:
        ours(x, state)
    assert options or str(got.value) == str(want.value)
    lengths = torch.tensor([2] * (x.shape[1] if x.dim() > 2 else 1))
    with pytest.raises((RuntimeError, ValueError), match=r"[Ee]xpected|dimensions|equal"):
        ours(x, state, lengths)


@pytest.mark.parametrize("kind", ["RNN", "GRU"])
@pytest.mark.parametrize("form", ["packed", "sorted"])
def test_a_packed_batch_without_gradients_is_left_to_torch(kind, form, monkeypatch):
    ours, theirs = make(kind, num_layers=2, bidirectional=True)
    monkeypatch.delattr("weft.nn.recurrent._forward")
    x = draw_input(form, True)
    with torch.no_grad():
        hold(ours(x), theirs(x), 0)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("both", [False, True])
def test_dropout_in_training_is_torchs_under_the_same_seed(kind, both):
    ours, theirs = make(kind, num_layers=3, dropout=0.5, bidirectional=both)
    x = draw_input("padded", False)
    torch.manual_seed(5)
    got = ours(x)
    torch.manual_seed(5)
    hold(got, theirs(x))


@pytest.mark.parametrize("form", ["padded", "packed", "single"])
@pytest.mark.parametrize("both", [False, True])
def test_a_projected_lstm(form, both):
    ours, theirs = make("LSTM", num_layers=2, proj_size=3, bidirectional=both, batch_first=True)
    x, state = draw_input(form, True), start("LSTM", ours, None if form == "single" else 3)
    hold(ours(x), theirs(x))
    hold(ours(x, state), theirs(x, state))


@pytest.mark.parametrize("nonlinearity", ["tanh", "relu"])
def test_both_nonlinearities(nonlinearity):
    ours, theirs = make("RNN", nonlinearity=nonlinearity, num_layers=2)
    x = draw_input("padded", False)
    hold(ours(x), theirs(x))


def packed_answer(layer, x, lengths, state, first):
    """Return what torch gives for the rows that have elements, padded again."""
    packed = pack_padded_sequence(x, lengths, first, enforce_sorted=False)
    y, final = layer(packed, state)
    return pad_packed_sequence(y, first, total_length=T)[0], final


@pytest.mark.parametrize("kind", [*KINDS, "projected"])
@pytest.mark.parametrize(("layers", "both", "first", "given"), [
    (1, False, True, False), (2, True, True, True), (2, True, False, False), (1, True, False, True),
])  # fmt: skip
def test_lengths_equal_packing_with_gradients(kind, layers, both, first, given):
    kind, options = ("LSTM", {"proj_size": 3}) if kind == "projected" else (kind, {})
    ours, theirs = make(kind, num_layers=layers, bidirectional=both, batch_first=first, **options)
    x, lengths = draw_input("padded", first), torch.tensor([2, 6, 4])
    state = start(kind, ours, 3) if given else None
    got, want = ours(x, state, lengths), packed_answer(theirs, x, lengths, state, first)
    hold(got, want)
    hold(tuple(weight_gradients(ours, *got)), tuple(weight_gradients(theirs, *want)))


@pytest.mark.parametrize("kind", [*KINDS, "projected"])
@pytest.mark.parametrize("given", [False, True])
def test_an_empty_row_keeps_its_state(kind, given):
    kind, options = ("LSTM", {"proj_size": 3}) if kind == "projected" else (kind, {})
    layer = make(kind, num_layers=2, bidirectional=True, batch_first=True, **options)[0]
    x, lengths = draw_input("padded", True), torch.tensor([3, 0, 6])
    state = start(kind, layer, 3) if given else None
    y, final = layer(x, state, lengths)
    assert (y[1] == 0).all()
    for leaf, begin in zip(flat(final), flat(state) if given else flat(final), strict=True):
        assert torch.equal(leaf[:, 1], begin[:, 1] if given else torch.zeros_like(leaf[:, 1]))
    alone, last = layer(x[:1, :3], None if state is None else _row(state, 0))
    hold((y[:1, :3], *(leaf[:, :1] for leaf in flat(final))), (alone, *flat(last)))


def _row(state, row: int):
    cut = tuple(leaf[:, row : row + 1].contiguous() for leaf in flat(state))
    return cut if isinstance(state, tuple) else cut[0]


@pytest.mark.parametrize("kind", KINDS)
def test_dropout_acts_between_layers_in_training(kind):
    layer = make(kind, num_layers=2, dropout=0.5)[0]
    x = draw_input("padded", False)
    assert not torch.equal(layer(x)[0], layer(x)[0])
    assert torch.equal(layer.eval()(x)[0], layer(x)[0])
    shallow = make(kind, num_layers=1)[0]
    assert torch.equal(shallow(x)[0], shallow(x)[0])


def test_a_gru_that_resets_before():
    layer = weft.nn.GRU(D, U, batch_first=True, dtype=torch.float64, reset="before")
    assert "reset=before" in repr(layer)
    x, w = draw_input("padded", True), RecurrentWeights(*layer.parameters())
    y, h = layer(x)
    want = torch.zeros(3, U, dtype=torch.float64)
    for t in range(T):
        want = ops.gru_step(x[:, t], want, w, "before")
        hold(y[:, t], want)
    hold(h[0], want)
    theirs = nn.GRU(D, U, batch_first=True, dtype=torch.float64)
    theirs.load_state_dict(layer.state_dict())
    assert not torch.allclose(theirs(x)[0], y)


def test_a_reset_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigError, match=r"`reset` must be `after` \(torch\) or `before` \(the lectures\), but is"
    ):
        weft.nn.GRU(D, U, reset="between")


def test_a_gru_that_resets_before_can_be_mapped_transformed_and_traced():
    layer = weft.nn.GRU(D, U, dtype=torch.float64, reset="before")
    x, params = draw_input("padded", False), dict(layer.named_parameters())

    def loss(p, row):
        return functional_call(layer, p, (row.unsqueeze(1),))[0].square().sum()

    each = vmap(grad(loss), (None, 1))(params, x)
    layer(x)[0].square().sum().backward()
    hold(tuple(leaf.sum(0) for leaf in each.values()), tuple(p.grad for p in params.values()))
    slope = torch.randn_like(x)
    near = (layer(x + 1e-6 * slope)[0] - layer(x - 1e-6 * slope)[0]) / 2e-6
    hold(jvp(lambda x: layer(x)[0], (x,), (slope,))[1], near, 1e-8)
    hold(torch.export.export(layer, (x,)).module()(x), layer(x))


def test_a_gru_that_resets_before_refuses_to_be_differentiated_twice():
    layer, x = weft.nn.GRU(D, U, reset="before"), torch.randn(T, 3, D, requires_grad=True)
    with pytest.raises(InputError, match=r"is differentiated once by its loop. Try backend=.reference"):
        torch.autograd.grad(layer(x)[0].sum(), x, create_graph=True)


@pytest.mark.parametrize("kind", KINDS)
def test_lengths_are_not_asked_of_an_exporter_or_the_meta_device(kind):
    layer, x, lengths = make(kind)[0], draw_input("padded", False), torch.tensor([2, 6, 0])
    exported = torch.export.export(layer, (x, None, lengths)).module()
    other = torch.tensor([6, 6, 6])
    hold(exported(x, None, other), layer(x, None, other))
    assert layer.to("meta")(x.to("meta"), None, lengths.to("meta"))[0].shape == (T, 3, U)


COMPILED = """
import torch
import weft.nn

lstm, lengths = weft.nn.LSTM(4, 6), torch.tensor([2, 5, 3])
x = torch.randn(5, 3, 4)
want = torch.autograd.grad(lstm(x, None, lengths)[0].sum(), list(lstm.parameters()))
y = torch.compile(lstm, backend="aot_eager")(x, None, lengths)[0]
got = torch.autograd.grad(y.sum(), list(lstm.parameters()))
assert all(torch.allclose(one, other, atol=1e-6) for one, other in zip(got, want, strict=True))
"""


def test_torch_compile_leaves_the_library_kernel_alone():
    """In a process of its own: the checks that tests hang on every function stop torch.compile."""
    done = subprocess.run([sys.executable, "-c", COMPILED], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
