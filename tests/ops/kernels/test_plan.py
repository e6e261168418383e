"""How a recurrence is cut: every layer that is promised fits, every row is served, no block waits outside."""

import itertools
import re

import pytest

from weft.ops.kernels import plan, recurrence
from weft.ops.kernels.plan import CELLS, Problem

H200 = (132, 232_448)  # multiprocessors, shared memory of a block
SMALL = (24, 101_376)
UNITS = (5, 650, 2048)
MORE_UNITS = (1, 8, 33, 128, 514, 1024)


def problems(units, batches=(8, 512), directions=(1,), device=H200, dtypes=(0, 1, 2)):
    grid = itertools.product(CELLS, (False, True), dtypes, units, batches, directions)
    return [Problem(*values, *device) for values in grid]


def check(problem: Problem, tiles: plan.Tiles) -> None:
    groups, passes = plan.groups_and_passes(problem, tiles)
    assert groups * tiles.blocks * problem.directions <= problem.multiprocessors, "all blocks are resident"
    assert groups * passes * tiles.rows >= problem.batch, "every row has a group"
    assert tiles.blocks * tiles.uc >= problem.units, "every unit has a block"
    assert tiles.threads <= 1024
    assert plan.shared_bytes(problem, tiles) <= problem.shared_bytes
    assert plan.registers(problem, tiles) * tiles.threads <= plan.REGISTERS
    for part in plan.products(problem, tiles):
        block = 64 // plan.element_bytes(problem)
        assert part.blocks * tiles.kw * block >= part.inner, "the warps share the whole inner dimension"


def check_all(many: list[Problem]) -> None:
    for problem in many:
        tiles = plan.choose(problem)
        assert tiles is not None, problem
        check(problem, tiles)


def test_every_half_precision_layer_up_to_2048_units_fits():
    check_all(problems(UNITS, dtypes=(0,)))


@pytest.mark.long
def test_every_half_precision_layer_fits_whatever_its_size():
    check_all(problems(MORE_UNITS, (8, 24, 64, 128, 512), dtypes=(0, 1)))


def test_both_directions_and_fp32_fit_up_to_650_units():
    check_all(problems((650,), (64,), (1, 2), dtypes=(2,)))


@pytest.mark.parametrize("backward", [False, True])
def test_a_small_gru_in_fp32_needs_no_exchange_between_blocks(backward):
    tiles = plan.choose(Problem("gru_after", backward, 2, 128, 64, 1, *H200))
    assert tiles is not None
    assert tiles.blocks == 1


def test_a_smaller_gpu_gets_cuts_that_fit_it_or_none():
    chosen = [(p, plan.choose(p)) for p in problems((512, 2048), (64,), device=SMALL, dtypes=(0,))]
    for problem, tiles in chosen:
        if tiles is not None:
            check(problem, tiles)
    assert {p.units for p, tiles in chosen if tiles is None} == {2048}


def test_batches_of_many_sizes_share_few_plans():
    planned = [plan.rounded(batch) for batch in range(1, 2049)]
    assert all(rows >= batch for batch, rows in enumerate(planned, start=1))
    assert len(set(planned)) == 16 + 14 + 1


def test_the_source_is_given_every_constant_it_asks_for():
    problem = Problem("lstm", True, 0, 650, 32, 1, *H200)
    tiles = plan.choose(problem)
    assert tiles is not None
    given = {name for name, _ in plan.constants(problem, tiles)}
    text = recurrence.SOURCE.read_text(encoding="utf-8")
    asked = re.search(r"Compile-time constants: (.*?)\n\n", text, re.DOTALL)
    assert asked is not None
    assert set(re.findall(r"\b[A-Z]{2,}\b", re.sub(r"\(.*?\)", "", asked[1], flags=re.DOTALL))) == given
