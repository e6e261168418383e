"""The exception tree, and the one table from it to exit codes."""

import difflib
from collections.abc import Iterable


class WeftError(Exception):
    """Anything weft refuses in one line: the rule, the value, the way out."""

    exit_code = 1


class InputError(WeftError):
    """The user's file, key, value or argument is at fault."""

    exit_code = 2


class ConfigError(InputError):
    """A key or value of the configuration is at fault."""


class DataError(InputError):
    """A data file, or a line of one, is at fault."""


class ArtefactError(WeftError):
    """Something weft wrote earlier is damaged or too new."""

    exit_code = 3


class ResourceError(WeftError):
    """Memory, disk or a device does not suffice."""

    exit_code = 4


class Interrupted(WeftError):
    """A signal asked the work to end; what could be saved was saved."""

    def __init__(self, message: str, signal_number: int):
        super().__init__(message)
        self.exit_code = 128 + signal_number


EXIT_CODES = {
    "done": 0,
    "our bug": WeftError.exit_code,
    "your input": InputError.exit_code,
    "damaged artefact": ArtefactError.exit_code,
    "out of resources": ResourceError.exit_code,
    "interrupted": 130,
    "terminated": 143,
}


def nearest(name: str, names: Iterable[str]) -> str:
    """Return " Did you mean `x`?" for the closest of `names`, or the list of all when none is close."""
    known = sorted(names)
    close = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
    if close:
        return f" Did you mean `{close[0]}`?"
    return f" Known: {', '.join(known)}." if known else ""
