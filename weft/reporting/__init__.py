"""Reports people read: figures, and pages that hold everything inside."""

from weft.reporting.comparison import write_comparison_report
from weft.reporting.entries import Alignment, Entry
from weft.reporting.figures import (
    alignment,
    confusion_matrix,
    learning_curve,
    length_histogram,
    png,
    quality_by_length,
)
from weft.reporting.run import REPORT, write_run_report

__all__ = [
    "REPORT",
    "Alignment",
    "Entry",
    "alignment",
    "confusion_matrix",
    "learning_curve",
    "length_histogram",
    "png",
    "quality_by_length",
    "write_comparison_report",
    "write_run_report",
]
