"""weft trains, compares and explains sequence models on your own data.

Names load when they are first used, so that the command line answers before torch is imported.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft import nn as nn
    from weft import ops as ops
    from weft.api import Run as Run
    from weft.api import WeftError as WeftError
    from weft.api import open as open
    from weft.api import train as train

__all__ = ["Run", "WeftError", "__version__", "nn", "open", "ops", "train"]
__version__ = "0.1.0"

_ROOMS = ("nn", "ops")


def __getattr__(name: str) -> Any:
    """Load a public name from its room."""
    if name in _ROOMS:
        return import_module(f"weft.{name}")
    if name in __all__:
        return getattr(import_module("weft.api"), name)
    raise AttributeError(f"module `weft` has no attribute `{name}`")


def __dir__() -> list[str]:
    return sorted(__all__)
