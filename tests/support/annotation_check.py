"""The checker behind every annotation of weft while tests run."""

import sys
from collections.abc import Callable
from typing import Any, runtime_checkable

from beartype import BeartypeConf, beartype

_check = beartype(conf=BeartypeConf(is_pep484_tower=True))  # an int is welcome where a float is asked for


def check(function: Callable[..., Any]) -> Callable[..., Any]:
    """Check arguments and results of `function`; an argument that is a protocol must have its methods."""
    for value in list(vars(sys.modules[function.__module__]).values()):
        if getattr(value, "_is_protocol", False) and not getattr(value, "_is_runtime_protocol", False):
            runtime_checkable(value)
    return _check(function)
