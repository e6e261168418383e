"""A run is a folder. Nothing else is needed to use it.

<run>/config.yaml  tokenizer.json  metrics.jsonl  log.txt
<run>/checkpoints/step-00012000/…   average-00012000/…
<run>/best → checkpoints/step-…     last → checkpoints/step-…
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from weft.core.errors import ArtefactError, InputError
from weft.core.shapes import Tensor
from weft.core.text import dump_yaml, load_yaml
from weft.runs import lock, pointers
from weft.runs import manifest as manifests
from weft.runs.average import average
from weft.runs.checkpoint import RUN_FILES, Checkpoint, remove, run_digests, write_checkpoint
from weft.runs.metrics import MetricsFile
from weft.runs.storage import place, replace_file, room_for

CONFIG, TOKENIZER, METRICS, LOG = "config.yaml", "tokenizer.json", "metrics.jsonl", "log.txt"


class RunFolder:
    """The folder of one run: its files, its checkpoints, its lock."""

    def __init__(self, path: Path):
        self.path = path
        self.metrics = MetricsFile(path / METRICS)

    @classmethod
    def create(
        cls, path: Path | str | None = None, name: str = "run", root: Path | str = "runs"
    ) -> RunFolder:
        """Make a new folder: `path`, or without one a fresh `root/name-NN`."""
        if path is None:
            return cls(_fresh(Path(root), name))
        path = Path(path)
        path.mkdir(parents=True, exist_ok=True)
        if any(entry.name != lock.NAME for entry in path.iterdir()):
            raise InputError(
                f"A new run needs a new or empty folder, but {path} holds files already. "
                f"Choose another `run=`, or continue it with `weft train --resume {path}`."
            )
        return cls(path)

    @classmethod
    def open(cls, path: Path | str) -> RunFolder:
        """Open the folder of a run made earlier."""
        path = Path(path)
        if not (path / CONFIG).is_file():
            raise InputError(f"A run's folder holds a {CONFIG}, but {path} does not. Is it the right folder?")
        return cls(path)

    def __str__(self) -> str:
        return str(self.path)

    def lock(self) -> AbstractContextManager[None]:
        """Hold the folder against a second training inside the block."""
        return lock.hold(self.path)

    def discard(self) -> None:
        """Remove what weft itself wrote into a run without a checkpoint, unless another process trains it."""
        with suppress(InputError, OSError), self.lock():
            if any(self.path.glob("checkpoints/*")):
                return
            for name in (CONFIG, TOKENIZER, METRICS, LOG, lock.NAME):
                (self.path / name).unlink(missing_ok=True)
            (self.path / "checkpoints").rmdir()

    @property
    def tokenizer_path(self) -> Path:
        return self.path / TOKENIZER

    def require_tokenizer(self) -> None:
        """Refuse a run that has lost its tokenizer.json, or never came to have one."""
        if self.tokenizer_path.exists():
            return
        if self.checkpoints() or self.averages():
            raise manifests.missing(TOKENIZER, self.path)
        raise InputError(f"{self} was stopped before training began. Delete it and start anew.")

    def config(self) -> dict[str, Any]:
        """Read config.yaml into plain sections."""
        try:
            text = (self.path / CONFIG).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ArtefactError(f"{self.path / CONFIG} cannot be read ({type(error).__name__}).") from None
        return load_yaml(text, str(self.path / CONFIG))

    def place(self, name: str, writer: Callable[[Path], object]) -> None:
        """Let `writer(path)` write the file `name` of this run, whole or not at all."""
        with room_for(0, name, self.path):
            place(self.path / name, writer)

    def write_config(self, values: Mapping[str, Any]) -> None:
        """Write config.yaml; checkpoints there are stay valid under the new one.

        A kill at any moment leaves them valid: first every manifest accepts both files, then the
        file changes, then every manifest accepts the new one alone.
        """
        new = dump_yaml(values).encode()
        checkpoints = self.checkpoints() + self.averages()
        old = run_digests(self.path).get(CONFIG, ())
        for checkpoint in checkpoints:
            _accept(checkpoint, (*old, _sha256(new)))
        with room_for(len(new), CONFIG, self.path):
            replace_file(self.path / CONFIG, new)
        for checkpoint in checkpoints:
            _accept(checkpoint, (_sha256(new),))

    def log(self, line: str) -> None:
        """Append a line to log.txt."""
        with room_for(len(line), LOG, self.path), open(self.path / LOG, "a", encoding="utf-8") as file:
            file.write(line + "\n")

    # Checkpoints

    def checkpoints(self) -> list[Checkpoint]:
        """Return the checkpoints of training, oldest first, damaged ones too."""
        return self._named("step")

    def averages(self) -> list[Checkpoint]:
        """Return the averages made of checkpoints, oldest first."""
        return self._named("average")

    def save(
        self,
        step: int,
        weights: Mapping[str, Tensor],
        state: Mapping[str, Any],
        scheduled: bool = True,
    ) -> Checkpoint:
        """Write the checkpoint of `step` and point `last` at it."""
        existing = self.checkpoints()
        kept = f"{existing[-1].name} is kept. " if existing else ""
        self.metrics.sync()
        checkpoint = self._checkpoint(f"step-{step:08d}")
        write_checkpoint(checkpoint, weights, state, step, scheduled, kept)
        self.point("last", checkpoint)
        return checkpoint

    def save_average(self, checkpoints: list[Checkpoint]) -> Checkpoint:
        """Write the mean weights of checkpoints as one that can predict, named by the newest."""
        step = checkpoints[-1].step
        checkpoint = self._checkpoint(f"average-{step:08d}")
        write_checkpoint(checkpoint, average(checkpoints), None, step, scheduled=False)
        return checkpoint

    def newest(self, warn: Callable[[str], object] = lambda line: None) -> Checkpoint | None:
        """Return the newest undamaged checkpoint; set damaged newer ones aside with a warning.

        None where there is none at all; ArtefactError where every one is damaged.
        """
        damage = ""
        for checkpoint in reversed(self.checkpoints()):
            try:
                checkpoint.verify()
            except manifests.NewerFormat:
                raise
            except ArtefactError as error:
                damage = damage or str(error)
                warn(f"{error} Falling back to the checkpoint before {checkpoint.name}.")
            else:
                return checkpoint
        if damage:
            raise ArtefactError(f"No checkpoint of {self.path} is whole. The newest: {damage} Train anew.")
        return None

    def set_aside_after(self, step: int) -> None:
        """Rename the checkpoints after `step` to damaged-…: training comes by there again."""
        for checkpoint in self.checkpoints():
            if checkpoint.step > step:
                aside = checkpoint.path.with_name(f"damaged-{checkpoint.name}")
                shutil.rmtree(aside, ignore_errors=True)
                os.replace(checkpoint.path, aside)

    def retain(self, keep: int) -> None:
        """Remove all checkpoints but the newest, the `keep` newest scheduled ones, and `best`."""
        checkpoints = self.checkpoints()
        scheduled = [c for c in checkpoints if _is_scheduled(c)][-keep:]
        best = pointers.read(self.path, "best")
        spared = {c.path for c in [*scheduled, *checkpoints[-1:]]} | ({best.resolve()} if best else set())
        for checkpoint in checkpoints:
            if checkpoint.path not in spared and checkpoint.path.resolve() not in spared:
                remove(checkpoint.path)

    def scheduled(self) -> list[Checkpoint]:
        """Return the checkpoints written on schedule, oldest first."""
        return [checkpoint for checkpoint in self.checkpoints() if _is_scheduled(checkpoint)]

    def clear_leftovers(self) -> None:
        """Remove what a kill left half-written or half-removed."""
        for leftover in self.path.glob("checkpoints/.*"):
            shutil.rmtree(leftover, ignore_errors=True)

    def point(self, name: str, checkpoint: Checkpoint | None) -> None:
        """Let `best` or `last` mean this checkpoint, or nothing."""
        with room_for(0, f"`{name}`", self.path):
            pointers.write(self.path, name, checkpoint.path if checkpoint else None)

    def pointed(self, name: str) -> Checkpoint | None:
        """Return the checkpoint `best` or `last` means, or None."""
        target = pointers.read(self.path, name)
        return Checkpoint(target, self.path) if target else None

    def checkpoint(self, name: str = "best") -> Checkpoint:
        """Return a checkpoint verified for use: `best` (or the newest), `last`, a step, a folder name."""
        if name.isdigit():
            name = f"step-{int(name):08d}"
        found = self._find(name)
        if found is None:
            known = ", ".join(c.name for c in self.checkpoints() + self.averages()) or "none yet"
            raise InputError(f"{self.path} has no checkpoint `{name}`. Known: {known}.")
        try:
            found.verify()
        except manifests.NewerFormat:
            raise
        except ArtefactError as error:
            raise ArtefactError(f"{error}{self._whole_ones()}") from None
        return found

    def weights(self, name: str = "best") -> dict[str, Tensor]:
        """Return a checkpoint's weights, verified.

        A training beside may point `best` or `last` elsewhere, and remove what it meant, in between: so a
        second look is taken before anything counts as damaged.
        """
        try:
            return self.checkpoint(name).weights()
        except ArtefactError:
            return self.checkpoint(name).weights()

    def _whole_ones(self) -> str:
        """Say which checkpoints could be used instead of a damaged one."""
        whole = [c.name for c in reversed(self.checkpoints() + self.averages()) if _is_whole(c)]
        others = f" (whole as well: {', '.join(whole[1:])})" if whole[1:] else ""
        return f" Try --checkpoint {whole[0]}{others}." if whole else ""

    def _find(self, name: str) -> Checkpoint | None:
        if name in ("best", "last"):
            return self.pointed(name) or next(reversed(self.checkpoints()), None)
        return next((c for c in self.checkpoints() + self.averages() if c.name == name), None)

    def _checkpoint(self, name: str) -> Checkpoint:
        return Checkpoint(self.path / "checkpoints" / name, self.path)

    def _named(self, kind: str) -> list[Checkpoint]:
        found = (
            path for path in self.path.glob(f"checkpoints/{kind}-*") if path.name.rpartition("-")[2].isdigit()
        )
        return sorted((Checkpoint(path, self.path) for path in found), key=lambda c: c.step)


def _fresh(root: Path, name: str) -> Path:
    """Make and return root/name-NN with the first number nobody has taken."""
    root.mkdir(parents=True, exist_ok=True)
    for path in _numbered(root, name):
        try:
            path.mkdir()
        except FileExistsError:
            continue
        return path
    raise AssertionError("numbers do not end")


def _numbered(root: Path, name: str) -> Iterator[Path]:
    number = 1
    while True:
        yield root / f"{name}-{number:02d}"
        number += 1


def _is_scheduled(checkpoint: Checkpoint) -> bool:
    try:
        return checkpoint.manifest().scheduled
    except ArtefactError:
        return False


def _is_whole(checkpoint: Checkpoint) -> bool:
    try:
        checkpoint.verify()
    except ArtefactError:
        return False
    return True


def _accept(checkpoint: Checkpoint, digests: tuple[str, ...]) -> None:
    """Let a whole checkpoint's manifest accept these digests of config.yaml."""
    try:
        manifest = checkpoint.manifest()
    except ArtefactError:
        return
    new = replace(manifest, run={**manifest.run, RUN_FILES[0]: digests})
    replace_file(checkpoint.path / manifests.NAME, manifests.render(new).encode())


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()
