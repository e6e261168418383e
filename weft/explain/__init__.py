"""What a configuration means before anything is trained: parameters, memory, arithmetic, time."""

from weft.explain.explanation import Explanation, Subject, explain
from weft.explain.flops import Flops, count_flops
from weft.explain.observe import Work, observe
from weft.explain.parts import count_parts, part_of
from weft.explain.probe import Speed, measure_speed
from weft.explain.stated import made_up, stated_fields
from weft.explain.table import render

__all__ = [
    "Explanation",
    "Flops",
    "Speed",
    "Subject",
    "Work",
    "count_flops",
    "count_parts",
    "explain",
    "made_up",
    "measure_speed",
    "observe",
    "part_of",
    "render",
    "stated_fields",
]
