"""What there is to time, by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from weft.bench import attention, loss, recurrent, tcn
from weft.bench.case import Case
from weft.core.errors import InputError, nearest

SUBJECTS: dict[str, Callable[[str], Iterator[Case]]] = {
    "rnn": recurrent.cases,
    "attention": attention.cases,
    "loss": loss.cases,
    "tcn": tcn.cases,
}


def select(subject: str, scale: str, only: str | None = None) -> list[Case]:
    """Return the cases of a subject at a scale whose title holds `only`, whatever the case of letters."""
    if subject not in SUBJECTS:
        raise InputError(f"There is nothing called `{subject}` to time.{nearest(subject, SUBJECTS)}")
    wanted = (only or "").casefold()
    return [case for case in SUBJECTS[subject](scale) if wanted in case.title.casefold()]
