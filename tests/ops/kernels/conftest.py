"""Where kernels can be tested without a GPU: on Linux, those in CUDA C++ if there is a C++ compiler.

That they compile for a GPU is tested where CUDA's run-time compiler is.

Triton's interpreter is mended for numpy 2.4, where int() refuses an array of one element.
"""

import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import run_time_compiler

CUDA = ["test_plans_script.py", "test_recurrence.py"]
TRITON = [
    p.name
    for p in Path(__file__).parent.glob("test_*.py")
    if p.name not in (*CUDA, "test_cuda.py", "test_plan.py", "test_products.py")
]

collect_ignore = [] if sys.platform == "linux" else [*CUDA, *TRITON]
if shutil.which("c++") is None:
    collect_ignore += CUDA
if not run_time_compiler.is_here():
    collect_ignore.append("test_cuda.py")


@pytest.fixture(autouse=True, scope="session")
def loops_run_to_arguments() -> Iterator[None]:
    """Let an interpreted kernel's `range` end at an argument."""
    if sys.platform != "linux":  # where there is no Triton
        yield
        return
    from triton.runtime import interpreter

    patch = interpreter._patch_lang_tensor

    def patch_and_mend(tensor, scope):
        patch(tensor, scope)
        scope.set_attr(tensor, "__index__", lambda self: self.handle.data.item())

    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(interpreter, "_patch_lang_tensor", patch_and_mend)
        yield
