"""weft from Python: `weft.train`, `weft.open`, `Run`, `Ensemble`, `alignments`, and what they raise."""

from weft.api.alignments import alignments
from weft.api.ensemble import Ensemble
from weft.api.run import Run
from weft.api.run import open_run as open
from weft.api.trace import RunTrace
from weft.api.training import train
from weft.core.errors import WeftError

__all__ = ["Ensemble", "Run", "RunTrace", "WeftError", "alignments", "open", "train"]
