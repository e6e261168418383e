"""Nested plain data with tensors in it: the tensors apart by name, the rest for JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from weft.core.shapes import Tensor

_MARK = "$tensor"


def pack(tree: Any) -> tuple[Any, dict[str, Tensor]]:
    """Split a tree of mappings and lists: {"a": tensor} → {"a": {"$tensor": "a"}}, {"a": tensor}."""
    tensors: dict[str, Tensor] = {}
    return _pack(tree, "", tensors), tensors


def unpack(tree: Any, tensors: Mapping[str, Tensor]) -> Any:
    """Put the tensors back where `pack` took them from."""
    if isinstance(tree, Mapping):
        if _MARK in tree:
            return tensors[tree[_MARK]]
        return {key: unpack(value, tensors) for key, value in tree.items()}
    if isinstance(tree, list):
        return [unpack(value, tensors) for value in tree]
    return tree


def _pack(tree: Any, path: str, tensors: dict[str, Tensor]) -> Any:
    if isinstance(tree, torch.Tensor):
        tensors[path] = tree
        return {_MARK: path}
    if isinstance(tree, Mapping):
        return {str(key): _pack(value, _below(path, key), tensors) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return [_pack(value, _below(path, i), tensors) for i, value in enumerate(tree)]
    return tree


def _below(path: str, key: object) -> str:
    return f"{path}/{key}" if path else str(key)
