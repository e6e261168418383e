"""CUDA C++ compiled at run time by the compiler that torch ships, kept on disk, launched by the driver."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import struct
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import torch

from weft.core.errors import ResourceError

_MAX_DYNAMIC_SHARED_MEMORY = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


class CompileError(RuntimeError):
    """The source does not compile with these constants."""


@dataclass(frozen=True)
class Kernel:
    """A kernel loaded on one device."""

    function: ctypes.c_void_p
    shared_bytes: int
    threads: int

    def launch(self, grid: int, arguments: tuple[int, ...], together: bool) -> None:
        """Launch on torch's current stream; `together`: every block must be resident at once.

        The kernel takes one structure, `arguments` packed as 64-bit words.
        """
        packed = ctypes.create_string_buffer(struct.pack(f"{len(arguments)}q", *arguments))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(packed))
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        shape = (grid, 1, 1, self.threads, 1, 1, self.shared_bytes, stream, parameters)
        if together:
            _check(_driver().cuLaunchCooperativeKernel(self.function, *shape))
        else:
            _check(_driver().cuLaunchKernel(self.function, *shape, None))


def load(
    source: Path, name: str, constants: tuple[tuple[str, int], ...], threads: int, device: int
) -> Kernel:
    """Return kernel `name` of `source` compiled with `constants`, from memory, from disk, or anew."""
    return _load(source, name, constants, threads, device)


@functools.cache
def _load(
    source: Path, name: str, constants: tuple[tuple[str, int], ...], threads: int, device: int
) -> Kernel:
    with torch.cuda.device(device):
        torch.cuda.current_stream().query()  # makes the device's context current
        module, function = ctypes.c_void_p(), ctypes.c_void_p()
        image = cubin(source.read_text(encoding="utf-8"), constants, torch.cuda.get_device_capability(device))
        _check(_driver().cuModuleLoadData(ctypes.byref(module), image))
        _check(_driver().cuModuleGetFunction(ctypes.byref(function), module, name.encode()))
        size = _constant(module, "shared_bytes")
        _check(_driver().cuFuncSetAttribute(function, _MAX_DYNAMIC_SHARED_MEMORY, size))
    return Kernel(function, size, threads)


def _constant(module: ctypes.c_void_p, name: str) -> int:
    """Read an int that the source declares."""
    at, size, value = ctypes.c_uint64(), ctypes.c_size_t(), ctypes.c_int()
    _check(_driver().cuModuleGetGlobal_v2(ctypes.byref(at), ctypes.byref(size), module, name.encode()))
    _check(_driver().cuMemcpyDtoH_v2(ctypes.byref(value), at, ctypes.c_size_t(4)))
    return value.value


def cubin(source: str, constants: tuple[tuple[str, int], ...], capability: tuple[int, int]) -> bytes:
    """Return machine code for a compute capability, from the cache on disk if it is there."""
    suffix = "a" if capability[0] >= 9 else ""
    options = [f"--gpu-architecture=sm_{capability[0]}{capability[1]}{suffix}", "--std=c++17"]
    options += [f"-D{key}={value}" for key, value in constants]
    told = "\n".join([source, *options, str(torch.version.cuda)])
    path = cache_folder() / f"{hashlib.sha256(told.encode()).hexdigest()[:32]}.cubin"
    try:
        return path.read_bytes()
    except OSError:
        image = _compile(source, options)
        _keep(path, image)
        return image


def cache_folder() -> Path:
    """Return where machine code is kept: kernels in $WEFT_CACHE, or in weft's part of the user's cache."""
    return Path(os.environ.get("WEFT_CACHE") or Path.home() / ".cache" / "weft") / "kernels"


def _keep(path: Path, image: bytes) -> None:
    """Write a cache file whole or not at all; a folder that takes nothing costs only the time."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(image)
        os.replace(file.name, path)
    except OSError:
        return


def _compile(source: str, options: list[str]) -> bytes:
    compiler, program = _compiler(), ctypes.c_void_p()
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    if compiler.nvrtcCreateProgram(ctypes.byref(program), source.encode(), b"weft.cu", 0, None, None):
        raise CompileError("the run-time compiler takes no program.")
    try:
        if compiler.nvrtcCompileProgram(program, len(options), words):
            log = _told(compiler, program, "ProgramLog").decode(errors="replace").rstrip("\0")
            raise CompileError(log)
        return _told(compiler, program, "CUBIN")
    finally:
        compiler.nvrtcDestroyProgram(ctypes.byref(program))


def _told(compiler: ctypes.CDLL, program: ctypes.c_void_p, what: str) -> bytes:
    size = ctypes.c_size_t()
    getattr(compiler, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(compiler, f"nvrtcGet{what}")(program, text)
    return text.raw


def why_not() -> str | None:
    """Return why nothing can be compiled and launched here, or None."""
    if not torch.cuda.is_available():
        return "there is no CUDA device"
    try:
        _compiler()
        _driver()
    except OSError as error:
        return f"{error}"
    return None


@functools.cache
def _driver() -> ctypes.CDLL:
    return ctypes.CDLL("nvcuda.dll" if sys.platform == "win32" else "libcuda.so.1")


@functools.cache
def _compiler() -> ctypes.CDLL:
    """Return NVRTC, as loaded by torch or from one of the folders in which torch's packages bring it."""
    major = str(torch.version.cuda).split(".")[0]
    names = [f"libnvrtc.so.{major}"]
    packages = Path(torch.__file__).parent.parent
    for pattern in (f"nvidia/*/lib/libnvrtc.so.{major}*", f"torch/lib/libnvrtc*.so.{major}*"):
        names += [str(path) for path in sorted(packages.glob(pattern))]
    for name in names:
        try:
            if os.path.isabs(name):  # what it needs lies beside it, and it asks by name alone
                for part in Path(name).parent.glob(f"libnvrtc-builtins*.so.{major}*"):
                    ctypes.CDLL(str(part))
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError(f"CUDA's run-time compiler (libnvrtc.so.{major}) was not found")


def _check(status: int) -> None:
    if status == 0:
        return
    if status == _TOO_LARGE:
        raise ResourceError(
            "The blocks of a recurrence must all be resident at once, but this GPU has no room for them now. "
            'Use fewer units, or backend="torch".'
        )
    text = ctypes.c_char_p()
    _driver().cuGetErrorString(status, ctypes.byref(text))
    raise RuntimeError(f"CUDA: {(text.value or b'unknown error').decode()} ({status})")
