"""weft from Python: `weft.train`, `weft.open`, `Run`, `Ensemble`, `alignments`."""

from weft.api.alignments import alignments
from weft.api.ensemble import Ensemble
from weft.api.run import Run
from weft.api.run import open_run as open
from weft.api.trace import RunTrace
from weft.api.training import train

__all__ = ["Ensemble", "Run", "RunTrace", "alignments", "open", "train"]
