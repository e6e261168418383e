"""One contract for every family, direction and attention kind.

Each check takes a Case (what to build) and raises AssertionError with what differs. A family is
covered from the day it registers: `cases()` goes over the registry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from weft.core.sequences import Sequences
from weft.core.shapes import Tensor
from weft.core.state import select_rows
from weft.nn.attention import KINDS
from weft.nn.families import AttentionSpec, families

WIDTH = 8
LENGTHS = (7, 1, 4, 0, 6)
SOURCE_LENGTHS = (3, 5, 1, 2, 4)
TOLERANCE = 1e-9  # float64


@dataclass(frozen=True)
class Case:
    """What to build: a family, its options, its direction, its attention to a source."""

    family: str
    direction: str = "causal"  # causal | one-way | both
    attention: str | None = None  # None: no source at all; "none": only its summary
    options: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.options.items())
        return "-".join(filter(None, [self.family, self.direction, self.attention, options]))

    @property
    def causal(self) -> bool:
        return self.direction == "causal"

    def build(self, seed: int = 0, **more: Any) -> Any:
        """Build the network in float64 with dropout off."""
        torch.manual_seed(seed)
        family = families[self.family]
        config = family.Config(**{"dropout": 0.0, "layers": 2, **self.options, **more})
        if self.causal:
            spec = None if self.attention is None else AttentionSpec(self.attention, 2, True)
            network: Any = family.backbone(WIDTH, config, spec)
        else:
            network = family.encoder(WIDTH, config, self.direction == "both")
        return network.double()

    def inputs(self, seed: int = 1) -> Sequences:
        """Return a ragged batch."""
        return _random(LENGTHS, seed)

    def source(self) -> Sequences:
        """Return a ragged source to decode."""
        return _random(SOURCE_LENGTHS, 2)

    def memory(self, network: Any, rows: Tensor | None = None) -> Any:
        """Return a prepared source, or None when this case decodes none."""
        if self.attention is None:
            return None
        source = self.source() if rows is None else self.source().rows(rows)
        return network.prepare(source, source.mean())


def _random(lengths: tuple[int, ...], seed: int) -> Sequences:
    """Draw a ragged batch without touching anybody's stream of chance."""
    stream = torch.Generator().manual_seed(seed)
    data = torch.randn(len(lengths), max(lengths), WIDTH, dtype=torch.float64, generator=stream)
    return Sequences(data, torch.tensor(lengths))


def cases() -> Iterator[Case]:
    """Yield every family in every direction, and as a decoder with every attention kind."""
    for family in families:
        for direction in ("causal", "one-way", "both"):
            yield Case(family, direction)
        for kind in KINDS:
            yield Case(family, attention=kind)


def run(case: Case, network: Any, x: Sequences) -> Sequences:
    """Run a network of either kind and return its outputs."""
    if case.causal:
        return network(x, None, case.memory(network))[0]
    return network(x)


def close(left: Tensor, right: Tensor, what: str, tolerance: float = TOLERANCE) -> None:
    """Hold two tensors against each other."""
    assert left.shape == right.shape, f"{what}: shapes {tuple(left.shape)} and {tuple(right.shape)}"
    if left.numel():
        error = (left - right).abs().max().item()
        assert error <= tolerance, f"{what}: differ by {error:.3g} (tolerance {tolerance:g})"


def same_state(case: Case, network: Any, left: Any, right: Any, what: str) -> None:
    """Hold two states against each other: by the outputs of the next steps, which is what a state is.

    Leaves are not compared: behind a row's end a cache may hold anything, and any capacity.
    """
    memory = case.memory(network)
    after = torch.ones(len(LENGTHS), WIDTH, dtype=torch.float64)
    for step in range(3):
        one, left = network.step(after * (step + 1), left, memory)
        other, right = network.step(after * (step + 1), right, memory)
        close(one, other, f"{what}, {step + 1} steps on")


def check_padding(case: Case) -> None:
    """Padding changes nothing valid, whatever stands in it."""
    network, x = case.build().eval(), case.inputs()
    want = run(case, network, x)
    longer = torch.cat([x.data, torch.zeros_like(x.data[:, :3])], dim=1)
    for noise in (1e3, torch.nan):
        got = run(case, network, Sequences(longer, x.lengths).fill(noise))
        close(got.data[:, : x.max_length], want.data, f"outputs with {noise} in the padding")
    for b, n in enumerate(LENGTHS):
        if n and case.attention is None:
            alone = run(case, network, Sequences.full(x.data[b : b + 1, :n]))
            close(alone.data[0], want.data[b, :n], f"row {b} alone")


def check_empty_rows(case: Case) -> None:
    """A row with nothing valid gives zeros, and nobody gets a NaN."""
    network, x = case.build().eval(), case.inputs()
    y = run(case, network, x)
    assert torch.isfinite(y.data).all(), "outputs are not finite"
    assert (y.data[LENGTHS.index(0)] == 0).all(), "an empty row gives something"
    assert (y.fill(0).data == y.data).all(), "padding is not zero"


def check_rows_permute(case: Case) -> None:
    """Rows do not know each other."""
    network, x = case.build().eval(), case.inputs()
    order = torch.tensor([4, 2, 0, 3, 1])
    want = run(case, network, x).rows(order)
    if case.causal:
        got = network(x.rows(order), None, case.memory(network, order))[0]
    else:
        got = network(x.rows(order))
    close(got.data, want.data, "permuted rows")


def check_step(case: Case) -> None:
    """Step by step gives what all at once gives, and leaves the same state behind."""
    network, x = case.build().eval(), case.inputs()
    full = Sequences.full(x.data)
    memory = case.memory(network)
    whole, end = network(full, None, memory)
    state = network.init_state(x.batch_size, memory=memory)
    for t in range(x.max_length):
        y, state = network.step(x.data[:, t], state, memory)
        close(y, whole.data[:, t], f"step {t}")
    same_state(case, network, state, end, "state after all steps")


def check_capacity(case: Case) -> None:
    """A state made with room for what comes goes on as one made without."""
    network, x = case.build().eval(), case.inputs()
    memory = case.memory(network)
    states = [network.init_state(x.batch_size, room, memory) for room in (None, 2, 50)]
    ends = [network(x, state, memory)[1] for state in states]
    for end in ends[1:]:
        same_state(case, network, end, ends[0], "state with a capacity")


def check_split(case: Case) -> None:
    """Cutting a ragged batch anywhere, the very ends included, and carrying the state gives the whole."""
    network, x = case.build().eval(), case.inputs()
    memory = case.memory(network)
    whole, end = network(x, None, memory)
    for cut in (0, 1, 4, 6, 7):
        head, tail = x.split(cut)
        first, state = network(head, None, memory)
        second, state = network(tail, state, memory)
        close(torch.cat([first.data, second.data], dim=1), whole.data, f"cut at {cut}")
        same_state(case, network, state, end, f"state after a cut at {cut}")


def check_no_rows(case: Case) -> None:
    """A batch of no rows gives a batch of no rows."""
    network, none = case.build().eval(), torch.zeros(0, dtype=torch.int64)
    x = case.inputs().rows(none)
    y = network(x, None, case.memory(network, none))[0] if case.causal else network(x)
    assert y.data.shape == x.data.shape, f"no rows give {tuple(y.data.shape)}"


def check_source_padding(case: Case) -> None:
    """What stands in a source's padding changes nothing, and an empty source gives no NaN."""
    if case.attention is None:
        return
    network, x, source = case.build().eval(), case.inputs(), case.source()
    want = network(x, None, network.prepare(source, source.mean()))[0]
    noisy = network.prepare(source.fill(torch.nan), source.mean())
    close(network(x, None, noisy)[0].data, want.data, "outputs with NaN in the source's padding")
    empty = Sequences(source.data, torch.zeros_like(source.lengths))
    got = network(x, None, network.prepare(empty, empty.mean()))[0].data
    assert torch.isfinite(got).all(), "an empty source gives outputs that are not finite"


def check_source_gradient(case: Case) -> None:
    """The loss of a decoder that attends reaches the source it looks at."""
    if case.attention in (None, "none"):
        return
    network, x, source = case.build(), case.inputs(), case.source()
    data = source.data.clone().requires_grad_()
    leaf = source.with_data(data)
    y = network(x, None, network.prepare(leaf, source.mean()))[0].data
    (gradient,) = torch.autograd.grad(y.square().sum(), data)
    valid = source.mask() & (x.lengths > 0).unsqueeze(1)
    assert (gradient[valid].abs().sum(-1) > 0).all(), "some source step gets no gradient"


def check_summary(case: Case) -> None:
    """A summary belongs to its row alone, ignores padding, and is zero for an empty row."""
    network, x = case.build().eval(), case.inputs()
    encoded = network(x)
    want = network.summarise(encoded)
    assert want.shape == (x.batch_size, WIDTH), f"a summary is {tuple(want.shape)}"
    assert (want[LENGTHS.index(0)] == 0).all(), "an empty row has a summary"
    order = torch.tensor([4, 2, 0, 3, 1])
    close(network.summarise(encoded.rows(order)), want[order], "summaries of permuted rows")
    close(network.summarise(encoded.fill(7.0)), want, "summaries with other padding")
    assert (want[0] - want[2]).abs().max() > 1e-6, "different rows have one summary"


def check_causal(case: Case) -> None:
    """No output depends on a later input."""
    network, x = case.build().eval(), case.inputs()
    data = x.data.clone().requires_grad_()
    y = run(case, network, x.with_data(data)).data
    for t in range(x.max_length - 1):
        (gradient,) = torch.autograd.grad(y[:, t].sum(), data, retain_graph=True)
        assert (gradient[:, t + 1 :] == 0).all(), f"output {t} depends on the future"


def check_looks_both_ways(case: Case) -> None:
    """The first output of a network that looks both ways depends on a later input."""
    network, x = case.build().eval(), case.inputs()
    data = x.data.clone().requires_grad_()
    y = run(case, network, x.with_data(data)).data
    (gradient,) = torch.autograd.grad(y[0, 0].square().sum(), data)
    assert (gradient[0, 1] != 0).any(), "output 0 does not see input 1"


def check_select(case: Case) -> None:
    """Selected rows of a state go on as those rows."""
    network, x = case.build().eval(), case.inputs()
    memory = case.memory(network)
    _, state = network(x, None, memory)
    order = torch.tensor([2, 0, 4])
    after = torch.ones(x.batch_size, WIDTH, dtype=torch.float64)
    want = network.step(after, state, memory)[0][order]
    got = network.step(after[order], select_rows(state, order), case.memory(network, order))[0]
    close(got, want, "selected rows")


def check_lanes(case: Case) -> None:
    """Several lanes of one source row give what copies of the source give."""
    if case.attention is None:
        return
    network, x = case.build().eval(), case.inputs()
    twice = torch.arange(x.batch_size).repeat_interleave(2)
    lanes = x.rows(twice).with_data(x.rows(twice).data + torch.randn(2 * x.batch_size, 1, 1).double())
    want = network(lanes, None, case.memory(network, twice))[0]
    close(network(lanes, None, case.memory(network))[0].data, want.data, "two lanes a source row")


ZERO_GRADIENTS = (
    "self_attention.key.bias",  # a shift of every score leaves the softmax as it is
    "cross_attention.key.bias",
    "attention.key.bias",
)


def check_gradients(case: Case) -> None:
    """Every parameter gets a finite gradient that is not zero, but for the mathematical zeros."""
    network, x = case.build().train(), case.inputs()
    y = run(case, network, x).data
    torch.manual_seed(3)
    (y * torch.randn_like(y)).sum().backward()
    for name, parameter in network.named_parameters():
        assert parameter.grad is not None, f"{name} has no gradient"
        assert torch.isfinite(parameter.grad).all(), f"{name} has a gradient that is not finite"
        if not name.endswith(ZERO_GRADIENTS):
            assert parameter.grad.abs().max() > 1e-12, f"{name} has a zero gradient"


def check_dropout(case: Case) -> None:
    """Dropout acts in training, follows the seed, and is gone in evaluation."""
    network, x = case.build(dropout=0.5), case.inputs()
    drawn = []
    for seed in (5, 5, 6):
        torch.manual_seed(seed)
        drawn.append(run(case, network.train(), x).data)
    assert torch.equal(drawn[0], drawn[1]), "the same seed gives another draw"
    assert not torch.equal(drawn[0], drawn[2]), "dropout does nothing"
    close(run(case, network.eval(), x).data, run(case, network.eval(), x).data, "evaluation twice", 0)


def check_state_dict(case: Case) -> None:
    """Saved and loaded into another network, the same outputs to the bit."""
    network, other, x = case.build(seed=0).eval(), case.build(seed=9).eval(), case.inputs()
    other.load_state_dict(network.state_dict())
    assert torch.equal(run(case, network, x).data, run(case, other, x).data), "outputs differ after loading"


CAUSAL_CHECKS: tuple[Callable[[Case], None], ...] = (
    check_step,
    check_capacity,
    check_split,
    check_causal,
    check_select,
    check_lanes,
    check_source_padding,
    check_source_gradient,
)
ALL_CHECKS: tuple[Callable[[Case], None], ...] = (
    check_padding,
    check_empty_rows,
    check_no_rows,
    check_rows_permute,
    check_gradients,
    check_dropout,
    check_state_dict,
)


def checks_for(case: Case) -> tuple[Callable[[Case], None], ...]:
    """Return the checks that apply to a case."""
    if case.causal:
        return ALL_CHECKS + CAUSAL_CHECKS
    if case.direction == "both":
        return (*ALL_CHECKS, check_summary, check_looks_both_ways)
    return (*ALL_CHECKS, check_summary, check_causal)
