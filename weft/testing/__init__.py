"""The contract every family and model keeps, for the tests, `weft doctor` and your own families."""

from weft.testing.contract import Case, cases, checks_for
from weft.testing.runs import Finding, check_run

__all__ = ["Case", "Finding", "cases", "check_run", "checks_for"]
