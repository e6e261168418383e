"""`weft doctor`: what weft finds around it, and whether a run is whole and keeps the contract."""

from __future__ import annotations

from typing import Annotated, Any

import typer


def doctor(
    run: Annotated[
        str | None,
        typer.Argument(metavar="RUN", show_default=False, help="A run's folder, to check its model."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Show the environment: Python, torch, threads, processor, GPU, disk, versions.

    With RUN: check that its files are whole, and that its model keeps the contract. Ends with 1
    when it does not.
    """
    if run is not None:
        examine(run, json)
        return
    from weft.cli.printing import print_json, print_pairs

    found = environment()
    if json:
        print_json(found)
    else:
        for title, pairs in found.items():
            print_pairs(title, pairs)


def examine(run: str, json: bool) -> None:
    """Check a run, one line a check as it is done, and fail naming the checks that did."""
    from weft.cli.printing import print_json
    from weft.core.errors import WeftError
    from weft.testing import check_run

    findings = []
    for finding in check_run(run):
        findings.append(finding)
        if not json:
            print(f"{'ok  ' if finding.passed else 'FAIL'}  {finding.check}", flush=True)
    if json:
        print_json([{"check": f.check, "passed": f.passed, "problem": f.problem} for f in findings])
    failed = [f"{f.check} ({f.problem})" for f in findings if not f.passed]
    if failed:
        raise WeftError(f"{run} fails {len(failed)} of {len(findings)} checks: {'; '.join(failed)}.")


def environment() -> dict[str, dict[str, Any]]:
    """Return what is found, a mapping from topic to facts."""
    return {
        "system": _system(),
        "torch": _torch(),
        "gpu": _gpus(),
        "kernels on a gpu": _kernels(),
        "disk": {"free here": _free_space(".")},
        "versions": _versions(),
    }


def _system() -> dict[str, Any]:
    import os
    import platform

    from weft import __version__

    return {
        "weft": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cores": _cores(os),
        "memory": _memory(os),
    }


def _cores(os: Any) -> int:
    """Return the cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory(os: Any) -> str:
    names = getattr(os, "sysconf_names", {})
    if "SC_PHYS_PAGES" not in names:
        return "unknown"
    return _gigabytes(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))


def _torch() -> dict[str, Any]:
    import torch

    return {
        "version": torch.__version__,
        "threads": torch.get_num_threads(),
        "vector instructions": torch.backends.cpu.get_cpu_capability(),
        "oneDNN": torch.backends.mkldnn.is_available(),
        "CUDA build": torch.version.cuda or "none",
    }


def _gpus() -> dict[str, Any]:
    import torch

    if not torch.cuda.is_available():
        return {"found": "none"}
    return {f"cuda:{i}": _gpu(torch.cuda.get_device_properties(i)) for i in range(torch.cuda.device_count())}


def _gpu(properties: Any) -> str:
    return (
        f"{properties.name}, {_gigabytes(properties.total_memory)}, sm_{properties.major}{properties.minor}"
    )


def _kernels() -> dict[str, str]:
    """Return which of weft's own kernels run by themselves, and which when asked for."""
    from weft.ops import trust

    words = {True: "taken by auto", False: "when asked for (WEFT_KERNELS, or backend=)"}
    return {name: words[name in trust.TRUSTED] for name in sorted(trust.KERNELS)}


def _free_space(folder: str) -> str:
    import shutil

    return _gigabytes(shutil.disk_usage(folder).free)


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def _versions() -> dict[str, str]:
    """Return the installed version of every package weft asks for."""
    import re
    from importlib.metadata import PackageNotFoundError, requires

    try:
        wanted = requires("weft") or []
    except PackageNotFoundError:  # run from a folder of sources
        return {}
    names = (re.match(r"[\w.-]+", line) for line in wanted if "dev" not in line)
    return {name[0]: _version(name[0]) for name in names if name}


def _version(name: str) -> str:
    from importlib.metadata import PackageNotFoundError, version

    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"
