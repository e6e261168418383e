"""The run folder: configuration, metrics, checkpoints that survive a crash."""

from weft.runs.average import average
from weft.runs.checkpoint import Checkpoint
from weft.runs.folder import RunFolder
from weft.runs.metrics import MetricsFile

__all__ = ["Checkpoint", "MetricsFile", "RunFolder", "average"]
