"""How fast weft is beside its peers: gated by equality, in one run, on the hardware at hand."""

from weft.bench.case import Case, Side
from weft.bench.measure import Row, measure
from weft.bench.records import RESULTS, Record, new_record, save
from weft.bench.subjects import SUBJECTS, select

__all__ = ["RESULTS", "SUBJECTS", "Case", "Record", "Row", "Side", "measure", "new_record", "save", "select"]
