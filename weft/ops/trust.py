"""Which kernels backend="auto" takes: those whose tests passed on a GPU just as they stand.

The others run when a backend is chosen by name, or for all of a program by the environment:
WEFT_KERNELS=all, =none, or names with commas, such as WEFT_KERNELS=recurrence,blocks.
"""

from __future__ import annotations

import os

from weft.core.errors import ConfigError, nearest

KERNELS = frozenset({"recurrence", "additive", "loss", "blocks"})
PROVEN: frozenset[str] = frozenset()


def read_trust(wish: str | None) -> frozenset[str]:
    """Return the kernels that WEFT_KERNELS asks for; the proven ones when it is not set."""
    if wish is None:
        return PROVEN
    names = frozenset(name.strip() for name in wish.split(",") if name.strip())
    if names in ({"all"}, {"none"}):
        return KERNELS if names == {"all"} else frozenset()
    for name in sorted(names - KERNELS):
        raise ConfigError(
            f"WEFT_KERNELS names `{name}`, no kernel.{nearest(name, ('all', 'none', *KERNELS))}"
        )
    return names


TRUSTED = read_trust(os.environ.get("WEFT_KERNELS"))  # read once: torch.compile takes it for a constant
