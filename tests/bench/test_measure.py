"""The gate stands before the clock."""

import copy
import dataclasses
from functools import partial

import pytest
import torch
from torch import nn

from weft.bench import Case, Side, measure
from weft.bench.case import Sides, compiled
from weft.core.errors import InputError, WeftError

CPU = torch.device("cpu")


def call(layer: nn.Module, factor: float = 1.0):
    return lambda x: (layer(x) * factor,)


def make(factor: float = 1.0, broken_peer: bool = False) -> Case:
    """Return a case whose first side is off by a factor."""

    def sides(device: torch.device) -> Sides:
        layer, peer, reference = (copy.deepcopy(plain) for _ in range(3))
        second = (lambda x: (peer(x.sum()),)) if broken_peer else call(peer)
        timed = [Side("weft", layer, call(layer, factor)), Side("peer", peer, second)]
        return Sides(timed, Side("reference", reference, call(reference)))

    plain = nn.Linear(3, 2)
    return Case("linear", "fp32", lambda: (torch.randn(4, 3),), sides, steps=4)


def test_both_passes_of_all_sides_are_timed():
    rows = measure(make(), CPU, 0.02)
    assert [row.run for row in rows] == ["forward", "forward+backward"]
    for row in rows:
        assert row.green
        assert row.error < 1e-6
        for timing in row.sides.values():
            assert timing.median_ms is not None
            assert timing.quartiles_ms is not None
            assert 0 < timing.quartiles_ms[0] <= timing.median_ms <= timing.quartiles_ms[1]
            assert timing.samples >= 3
        assert row.sides["weft"].times_slower == 1
    assert rows[0].sides["weft"].samples == rows[0].sides["peer"].samples


@pytest.mark.parametrize("factor", [1.001, float("nan")])
def test_behind_a_red_gate_there_is_no_number(factor):
    for row in measure(make(factor), CPU, 0.02):
        assert not row.green
        assert row.sides == {}


def test_a_wrong_gradient_alone_makes_the_gate_red():
    def sides(device: torch.device) -> Sides:
        made = make().sides(device)
        layer = made.timed[0].module
        wrong = Side("weft", layer, lambda x: (layer(x.detach()) + 0 * x.sum(),))
        return made._replace(timed=[wrong])

    rows = measure(dataclasses.replace(make(), sides=sides), CPU, 0.02)
    assert [row.green for row in rows] == [False, False]


def test_a_peer_that_does_not_run_says_why():
    row = measure(make(broken_peer=True), CPU, 0.02)[0]
    assert row.sides["weft"].median_ms is not None
    assert row.sides["peer"].median_ms is None
    assert "RuntimeError" in (row.sides["peer"].failed or "")


def test_a_case_that_fails_says_why_and_the_next_is_measured():
    def sides(device: torch.device) -> Sides:
        made = make().sides(device)
        weft = made.timed[0]
        return made._replace(timed=[weft._replace(call=lambda x: (weft.module(x.sum()),))])

    for row in measure(dataclasses.replace(make(), sides=sides), CPU, 0.02):
        assert not row.green
        assert (row.error, row.sides) == (None, {})
        assert "RuntimeError" in (row.failed or "")


def test_nothing_is_measured_on_a_gpu_that_a_case_has_lost(monkeypatch):
    def synchronize(device):
        raise RuntimeError("CUDA error: unspecified launch failure")

    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    with pytest.raises(WeftError, match="`linear fp32` left this process without its GPU"):
        measure(make(), torch.device("cuda"), 0.02)


def test_a_peer_is_compiled_for_the_sizes_of_each_case(monkeypatch):
    sizes = []

    def keep(graph, inputs):
        sizes.append([*inputs[0].shape])
        return graph.forward

    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend=keep))
    for rows in range(2, 12):
        compiled(lambda x: x * 2)(torch.ones(rows))
    assert sizes == [[rows] for rows in range(2, 12)]


def test_every_case_can_be_told_from_the_others():
    from weft.bench import SUBJECTS

    for subject, cases in SUBJECTS.items():
        for scale in ("cuda", "cpu", "quick"):
            titles = [case.title for case in cases(scale)]
            assert titles, (subject, scale)
            assert len(set(titles)) == len(titles)


def test_cases_are_picked_by_a_part_of_their_title():
    from weft.bench import select

    assert [case.name for case in select("rnn", "cpu", "lstm RAGGED")] == ["LSTM ragged B32 T64 256→256"]
    assert len(select("rnn", "cuda", "B16 T1024")) == 1
    with pytest.raises(InputError, match=r"There is nothing called `los` to time. Did you mean `loss`\?"):
        select("los", "cpu")
