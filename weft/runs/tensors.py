"""Tensors as files of the safetensors format: streamed out, shared storage written once.

The writer is ours because the library's builds the whole file in memory before the first byte is
written, and reports a full disk as text. Reading is the library's.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open

from weft.core.errors import ArtefactError
from weft.core.shapes import Tensor
from weft.runs.storage import Digest, write_file

_DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def write_tensors(path: Path, tensors: Mapping[str, Tensor]) -> Digest:
    """Write named tensors to a safetensors file; names of one tensor (tied weights) share its bytes."""
    kept, aliases = find_aliases(tensors)
    order = sorted(kept, key=lambda name: (-kept[name].element_size(), name))  # keeps every tensor aligned
    return write_file(path, _chunks(kept, order, aliases))


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Read a safetensors file; names that shared one tensor share it again.

    Each is copied to memory of torch's own: in the file it may stand at any multiple of 8 bytes,
    and the last bit of a matrix product depends on how its operands are aligned.
    """
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name).clone() for name in file.keys()}  # noqa: SIM118 (no iterator)
            aliases = json.loads((file.metadata() or {}).get("aliases", "{}"))
        return tensors | {name: tensors[first] for name, first in aliases.items()}
    except (SafetensorError, OSError, ValueError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())
        raise ArtefactError(f"{path} is no readable safetensors file: {reason}.") from None


def find_aliases(tensors: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, str]]:
    """Return the tensors to write, and for every further name of one of them the first name."""
    first: dict[tuple[object, ...], str] = {}
    aliases: dict[str, str] = {}
    for name, tensor in tensors.items():
        place = _place(tensor)
        if tensor.numel() and first.setdefault(place, name) != name:
            aliases[name] = first[place]
    return {name: tensors[name] for name in tensors if name not in aliases}, aliases


def _place(tensor: Tensor) -> tuple[object, ...]:
    return tensor.device, tensor.data_ptr(), tensor.dtype, tuple(tensor.shape), tensor.stride()


def _chunks(
    tensors: Mapping[str, Tensor], order: list[str], aliases: dict[str, str]
) -> Iterator[bytes | memoryview]:
    """Yield the file: header length (8 bytes), header (JSON, padded to 8), bytes of each tensor."""
    header = json.dumps(_header(tensors, order, aliases), separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    yield struct.pack("<Q", len(header))
    yield header
    for name in order:
        yield memoryview(_bytes(tensors[name]))


def _header(tensors: Mapping[str, Tensor], order: list[str], aliases: dict[str, str]) -> dict[str, object]:
    header: dict[str, object] = {"__metadata__": {"aliases": json.dumps(aliases)}} if aliases else {}
    start = 0
    for name in order:
        tensor = tensors[name]
        end = start + tensor.numel() * tensor.element_size()
        header[name] = {
            "dtype": _DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [start, end],
        }
        start = end
    return header


def _bytes(tensor: Tensor) -> bytes | memoryview:
    flat = tensor.detach().cpu().contiguous().reshape(-1)
    return flat.view(torch.uint8).numpy().data if flat.numel() else b""
