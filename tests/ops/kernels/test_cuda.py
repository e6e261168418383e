"""CUDA C++ compiled at run time, as far as that needs no GPU: wherever CUDA's run-time compiler is found."""

import pytest
from run_time_compiler import as_if_built_for_cuda

from weft.ops.kernels import cuda, plan, recurrence
from weft.ops.kernels.plan import Problem

SOURCE = recurrence.SOURCE.read_text(encoding="utf-8")
H200, CAPABILITY = (132, 232_448), (9, 0)


@pytest.fixture(autouse=True)
def for_cuda():
    with as_if_built_for_cuda():
        yield


@pytest.mark.parametrize("cell", plan.CELLS)
@pytest.mark.parametrize("backward", [False, True])
def test_the_source_becomes_machine_code_with_the_room_that_is_planned(cell, backward):
    for dtype in (0, 1, 2):
        problem = Problem(cell, backward, dtype, 130, 16, 1, *H200)
        tiles = plan.choose(problem)
        assert tiles is not None
        room = f"\nstatic_assert(SHARED_BYTES == {plan.shared_bytes(problem, tiles)});\n"
        image = cuda.cubin(SOURCE + room, plan.constants(problem, tiles), CAPABILITY)
        assert image.startswith(b"\x7fELF")
        assert image.count(b"shared_bytes\0") >= 1  # what a launch asks for by name


def test_machine_code_is_kept_and_made_once(monkeypatch, cache_folder):
    problem = Problem("tanh", False, 0, 16, 8, 1, *H200)
    constants = plan.constants(problem, plan.choose(problem))
    image = cuda.cubin(SOURCE, constants, CAPABILITY)
    monkeypatch.setattr(cuda, "_compile", None)
    assert cuda.cubin(SOURCE, constants, CAPABILITY) == image


def test_what_does_not_compile_says_why():
    with pytest.raises(cuda.CompileError, match='identifier "missing" is undefined'):
        cuda.cubin("__global__ void f() { missing(); }", (), CAPABILITY)
