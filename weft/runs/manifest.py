"""The manifest: what a checkpoint consists of, by SHA-256, and the seal of the list itself.

The text is canonical: it must equal, byte for byte, what its own content renders to, so a changed
byte anywhere (a blank, too) is noticed. `run` lists the run's files that the model needs; each
may have two digests while the run's configuration is being changed.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from weft.core.errors import ArtefactError
from weft.runs.storage import Digest, digest_file

FORMAT = 1
NAME = "manifest.json"


@dataclass(frozen=True)
class Manifest:
    """What a checkpoint is and consists of."""

    step: int
    scheduled: bool  # written because its step was due, not because of a signal or a new best
    files: dict[str, Digest] = field(default_factory=dict)
    run: dict[str, tuple[str, ...]] = field(default_factory=dict)
    format: int = FORMAT


def render(manifest: Manifest) -> str:
    """Return the manifest's one true text."""
    return _seal(_plain(manifest))


def read(folder: Path) -> Manifest:
    """Read and check the manifest of a checkpoint folder itself, not yet the files it lists."""
    path = folder / NAME
    try:
        text = path.read_bytes().decode("ascii")
        content = json.loads(text)
        sealed = text == _seal({key: value for key, value in content.items() if key != "seal"})
        newer = sealed and content["format"] > FORMAT
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ArtefactError(f"{path} is missing or damaged ({type(error).__name__}).") from None
    if newer:
        raise NewerFormat(
            f"{path} has format {content['format']}, but this weft reads up to {FORMAT}. Upgrade weft."
        )
    if not sealed:
        raise ArtefactError(f"{path} is damaged: its seal does not fit its text.")
    return _read(content)


def verify(folder: Path, run: Path) -> Manifest:
    """Check every byte a checkpoint needs against its manifest."""
    manifest = read(folder)
    for name, expected in manifest.files.items():
        _check(folder / name, (expected.sha256,))
    for name, digests in manifest.run.items():
        if not (run / name).exists():
            raise missing(name, run)
        _check(run / name, digests, " Restore it from a copy.")
    return manifest


def missing(name: str, run: Path) -> ArtefactError:
    """Return the error that a file every checkpoint of a run needs is gone."""
    return ArtefactError(f"{name} is missing from {run}; restore it from a copy.")


class NewerFormat(ArtefactError):
    """Written by a newer weft: not damaged, so nothing older stands in for it."""


def _check(path: Path, digests: tuple[str, ...], way_out: str = "") -> None:
    try:
        actual = digest_file(path)
    except OSError as error:
        raise ArtefactError(
            f"{path} cannot be read: {(error.strerror or 'no reason given').lower()}."
        ) from None
    if actual.sha256 not in digests:
        raise ArtefactError(
            f"{path} is damaged: its SHA-256 is {actual.sha256[:12]}…, "
            f"but must be {digests[-1][:12]}….{way_out}"
        )


def _plain(manifest: Manifest) -> dict[str, Any]:
    return {
        "format": manifest.format,
        "step": manifest.step,
        "scheduled": manifest.scheduled,
        "files": {name: asdict(digest) for name, digest in manifest.files.items()},
        "run": {name: list(digests) for name, digests in manifest.run.items()},
    }


def _read(content: Mapping[str, Any]) -> Manifest:
    files = {name: Digest(**digest) for name, digest in content["files"].items()}
    run = {name: tuple(digests) for name, digests in content["run"].items()}
    return Manifest(content["step"], content["scheduled"], files, run, content["format"])


def _seal(content: Mapping[str, Any]) -> str:
    body = json.dumps(content, indent=1)
    seal = hashlib.sha256(body.encode()).hexdigest()
    return json.dumps({**content, "seal": seal}, indent=1) + "\n"
