"""Score: an evaluation as plain data, as JSON, as a table."""

from weft.evaluation.lengths import length_buckets
from weft.evaluation.summary import EVALUATION, read_evaluation, summarise, write_evaluation
from weft.evaluation.table import render_table

__all__ = [
    "EVALUATION",
    "length_buckets",
    "read_evaluation",
    "render_table",
    "summarise",
    "write_evaluation",
]
