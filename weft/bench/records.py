"""What is kept of a measurement: benchmarks/results/<what>_<hardware>_<yyyy-mm>.json."""

from __future__ import annotations

import datetime
import json
import os
import platform
import re
import subprocess
from dataclasses import asdict, dataclass, field
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

from weft import __version__
from weft.bench.measure import Row
from weft.ops import trust

RESULTS = Path("benchmarks") / "results"
_SOURCES = Path(__file__).resolve().parents[1]


@dataclass
class Record:
    """The rows of one subject on one machine; each row tells its day and commit."""

    what: str
    hardware: str
    versions: dict[str, str]
    rows: list[dict[str, Any]] = field(default_factory=list)

    def add(self, row: Row) -> None:
        """Add a row, in place of an older one of the same case and pass."""
        key = (row.case, row.dtype, row.run)
        self.rows = [old for old in self.rows if (old["case"], old["dtype"], old["run"]) != key]
        self.rows.append({**asdict(row), "date": _today().isoformat(), "commit": commit_of_sources()})

    def file(self, folder: Path) -> Path:
        """Return where it is kept."""
        return folder / f"{self.what}_{_slug(self.hardware)}_{_today():%Y-%m}.json"


def new_record(what: str, device: torch.device, folder: Path) -> Record:
    """Return an empty record, or this month's when it is of the same versions."""
    record = Record(what, name_of(device), versions_here())
    path = record.file(folder)
    if path.exists():
        kept = Record(**json.loads(path.read_text(encoding="utf-8")))
        if kept.versions == record.versions:
            return kept
    return record


def save(record: Record, folder: Path) -> Path:
    """Write the record and return its path."""
    path = record.file(folder)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(asdict(record), indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    return path


def _today() -> datetime.date:
    return datetime.datetime.now(datetime.UTC).date()


def name_of(device: torch.device) -> str:
    """Return what the device is called, on a CPU with the threads in use."""
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{_processor()}, {torch.get_num_threads()} threads"


def _processor() -> str:
    """Return the processor's name, as the system tells it."""
    facts = Path("/proc/cpuinfo")
    named = re.search(r"model name\s*:\s*(.+)", facts.read_text()) if facts.exists() else None
    return named[1] if named else platform.processor() or platform.machine()


def _slug(name: str) -> str:
    """Write a name as a file's: lower case, without what says nothing."""
    words = re.sub(r"\(r\)|\(tm\)|nvidia|processor|cpu", "", name.lower())
    return re.sub(r"[^a-z0-9.]+", "-", words).strip("-")


def versions_here() -> dict[str, str]:
    """Return the versions of what a timing depends on."""
    cudnn = torch.backends.cudnn.version() if torch.cuda.is_available() else None
    found = {
        "weft": __version__,
        "python": platform.python_version(),
        "torch": torch.__version__,
        "cuda": torch.version.cuda,
        "cudnn": None if cudnn is None else str(cudnn),
        "triton": _installed("triton"),
        "kernels": ", ".join(sorted(trust.TRUSTED)) or "none" if torch.cuda.is_available() else None,
    }
    return {name: value for name, value in found.items() if value}


def _installed(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def commit_of_sources() -> str | None:
    """Return the commit of weft's sources, `+` when they have changed since; None outside a checkout.

    Where sources were copied without their history, WEFT_COMMIT may tell it.
    """
    if "WEFT_COMMIT" in os.environ:
        return os.environ["WEFT_COMMIT"]
    head = _git("rev-parse", "--short", "HEAD")
    if head is None or _git("ls-files", "--error-unmatch", str(_SOURCES / "__init__.py")) is None:
        return None
    return head + ("+" if _git("status", "--porcelain", "--", str(_SOURCES)) else "")


def _git(*words: str) -> str | None:
    try:
        command = ["git", "-C", str(_SOURCES), *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None
