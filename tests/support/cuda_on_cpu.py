"""Runs the recurrence's CUDA source on the CPU, so that its logic can be tested where there is no GPU.

The source is compiled by the machine's C++ compiler as it stands, but for the functions that hold machine
instructions: those are said in C++ by `cuda_on_cpu_asm.h`. `cuda_on_cpu.h` tells how threads are run.
"""

import contextlib
import ctypes
import functools
import re
import shutil
import struct
import subprocess
import tempfile
from pathlib import Path

import pytest
import torch

from weft.ops.kernels import cuda, plan, recurrence

HERE = Path(__file__).parent
FUNCTION = re.compile(  # on one line, or up to a brace that begins a line
    r"^__device__ __forceinline__ [^\n]*?(\w+)\([^\n]*\{(?:[^\n]*\}\n|[^\n}]*\n.*?^\}\n)",
    re.MULTILINE | re.DOTALL,
)
BEFORE, NUMBERS = "typedef unsigned int u32;", "// ---- numbers"
SHARED = "extern __shared__ __align__(128) char shared[];"
IN_SHARED = "char *shared = (char *)(((uintptr_t)gpu::block().shared.data() + 127) / 128 * 128);"
SHARED_BYTES = 232_448  # that a block of the GPU that is played may have


def translate(source: str) -> str:
    """Return the source as C++."""
    said = set(re.findall(r"^inline [^\n]*?(\w+)\(", part("cuda_on_cpu_asm.h"), re.MULTILINE))
    removed = set()

    def without_instructions(match: re.Match[str]) -> str:
        if "asm" not in match[0]:
            return match[0]
        removed.add(match[1])
        return ""

    text = FUNCTION.sub(without_instructions, source)
    assert removed <= said, f"in machine instructions alone: {removed - said}"
    assert "asm" not in text
    for mark, new in ((BEFORE, part("cuda_on_cpu.h") + BEFORE), (SHARED, IN_SHARED)):
        assert text.count(mark) == 1, mark
        text = text.replace(mark, new)
    begin = text.index(NUMBERS)
    return text[:begin] + part("cuda_on_cpu_asm.h") + text[begin:] + part("cuda_on_cpu_run.h")


def part(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


@functools.cache
def compiled(source: Path, constants: tuple[tuple[str, int], ...]) -> ctypes.CDLL:
    """Compile the source with these constants."""
    folder = Path(tempfile.mkdtemp())
    (folder / "kernel.cpp").write_text(translate(source.read_text(encoding="utf-8")), encoding="utf-8")
    options = ["-std=c++20", "-O1", "-fno-strict-aliasing", "-w", "-shared", "-fPIC"]
    defines = [f"-D{name}={value}" for name, value in constants]
    command = ["c++", *options, *defines, "-o", str(folder / "kernel.so"), str(folder / "kernel.cpp")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[:3000]
    library = ctypes.CDLL(str(folder / "kernel.so"))
    shutil.rmtree(folder)
    return library


class Kernel:
    """A compiled kernel, launched like `weft.ops.kernels.cuda.Kernel`."""

    def __init__(self, library: ctypes.CDLL, late: int):
        self.library, self.late = library, late

    def launch(self, grid: int, arguments: tuple[int, ...], together: bool) -> None:
        packed = ctypes.create_string_buffer(struct.pack(f"{len(arguments)}q", *arguments))
        if self.library.launch(grid, packed, self.late):
            raise RuntimeError("the kernel waits for what never comes")


def play_gpu(
    monkeypatch: pytest.MonkeyPatch,
    multiprocessors: int = 132,
    source: Path = recurrence.SOURCE,
    late: int = -1,
) -> None:
    """Let the recurrence run on CPU tensors until the test ends, as on a GPU of so many multiprocessors.

    Warp `late` of each block moves only when no other can: that shows where a barrier is missing.
    """

    def load(path, name, constants, threads, device):
        return Kernel(compiled(source, constants), late)

    def problem(cell, backward, dtype, units, batch, directions, device):
        sizes = (units, plan.rounded(batch), directions, multiprocessors, SHARED_BYTES)
        return plan.Problem(cell, backward, recurrence.DTYPES[dtype], *sizes)

    monkeypatch.setattr(cuda, "load", load)
    monkeypatch.setattr(torch.cuda, "device", contextlib.nullcontext)
    monkeypatch.setattr(recurrence, "_problem", problem)
