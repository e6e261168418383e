"""One checkpoint: a folder that is whole or absent.

    model.safetensors      the weights to predict with (the moving average, where one is kept)
    optimizer.safetensors  every other tensor training needs to go on
    state.json             every other value training needs to go on
    manifest.json          SHA-256 of these and of the run's config.yaml and tokenizer.json

An average of checkpoints has weights and a manifest only.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.core.errors import ArtefactError
from weft.core.shapes import Tensor
from weft.runs import manifest as manifests
from weft.runs.manifest import Manifest
from weft.runs.packing import pack, unpack
from weft.runs.storage import Digest, digest_file, room_for, sync_folder, write_file
from weft.runs.tensors import find_aliases, read_tensors, write_tensors

RUN_FILES = ("config.yaml", "tokenizer.json")
MODEL, OPTIMIZER, STATE = "model.safetensors", "optimizer.safetensors", "state.json"


@dataclass(frozen=True)
class Checkpoint:
    """A checkpoint folder and the run it belongs to."""

    path: Path
    run: Path

    @property
    def name(self) -> str:
        return self.path.name

    @property
    def step(self) -> int:
        """The optimizer steps made when it was written, by its name."""
        return int(self.name.rpartition("-")[2])

    def verify(self) -> Manifest:
        """Check every byte it needs; ArtefactError names the damaged file."""
        return manifests.verify(self.path, self.run)

    def manifest(self) -> Manifest:
        """Read the manifest without checking the files it lists."""
        return manifests.read(self.path)

    def weights(self) -> dict[str, Tensor]:
        """Return the weights to predict with, as a state_dict."""
        return read_tensors(self.path / MODEL)

    def state(self) -> dict[str, Any]:
        """Return what training needs to go on, beside the weights."""
        try:
            values = json.loads((self.path / STATE).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise ArtefactError(f"{self.path} holds weights only. Resume from a step-… checkpoint.") from None
        return unpack(values, read_tensors(self.path / OPTIMIZER))


def write_checkpoint(
    checkpoint: Checkpoint,
    weights: Mapping[str, Tensor],
    state: Mapping[str, Any] | None,
    step: int,
    scheduled: bool,
    kept: str = "",
) -> None:
    """Write a checkpoint under a temporary name, make it durable, then give it its name."""
    parent = checkpoint.path.parent
    temporary = parent / f".{checkpoint.name}.part"
    shutil.rmtree(temporary, ignore_errors=True)
    values, tensors = pack(state)
    needed = _size(weights) + _size(tensors)
    try:
        with room_for(needed, f"checkpoint {checkpoint.name}", parent, kept):
            temporary.mkdir(parents=True)
            files = _write_files(temporary, weights, values, tensors)
            _write_manifest(temporary, Manifest(step, scheduled, files, run_digests(checkpoint.run)))
            _rename(temporary, checkpoint.path)
    except BaseException:
        shutil.rmtree(temporary, ignore_errors=True)
        raise


def run_digests(run: Path) -> dict[str, tuple[str, ...]]:
    """Return the digests of the run's files that every checkpoint needs."""
    return {name: (digest_file(run / name).sha256,) for name in RUN_FILES if (run / name).exists()}


def remove(path: Path) -> None:
    """Remove a checkpoint so that a half-removed one never bears its name."""
    hidden = path.with_name(f".{path.name}.old")
    shutil.rmtree(hidden, ignore_errors=True)
    os.replace(path, hidden)
    shutil.rmtree(hidden, ignore_errors=True)


def _write_files(
    folder: Path, weights: Mapping[str, Tensor], values: Any, tensors: Mapping[str, Tensor]
) -> dict[str, Digest]:
    files = {MODEL: write_tensors(folder / MODEL, weights)}
    if values is not None:
        text = json.dumps(values, allow_nan=False, indent=1)
        files[OPTIMIZER] = write_tensors(folder / OPTIMIZER, tensors)
        files[STATE] = write_file(folder / STATE, [text.encode()])
    return files


def _write_manifest(folder: Path, manifest: Manifest) -> None:
    write_file(folder / manifests.NAME, [manifests.render(manifest).encode()])
    sync_folder(folder)


def _rename(temporary: Path, path: Path) -> None:
    if path.exists():
        remove(path)
    os.replace(temporary, path)
    sync_folder(path.parent)


def _size(tensors: Mapping[str, Tensor]) -> int:
    kept, _ = find_aliases(tensors)
    return sum(tensor.numel() * tensor.element_size() for tensor in kept.values())
