"""Spell one date in many unambiguous ways, and know which characters each ISO character came from."""

from __future__ import annotations

import re
from datetime import date, timedelta

FIRST = date(1900, 1, 1)
DAYS = (date(2100, 1, 1) - FIRST).days

_WORDS = """
January February March April May June July August September October November December
Monday Tuesday Wednesday Thursday Friday Saturday Sunday
I II III IV V VI VII VIII IX X XI XII
first second third fourth fifth sixth seventh eighth ninth tenth eleventh twelfth thirteenth fourteenth
fifteenth sixteenth seventeenth eighteenth nineteenth twentieth
"""
_MONTHS, _WEEKDAYS, _ROMAN, *_ONES = (line.split() for line in _WORDS.strip().splitlines())
_ORDINALS = [*_ONES[0], *_ONES[1]]
_ORDINALS += [f"twenty-{word}" for word in _ORDINALS[:9]] + ["thirtieth", "thirty-first"]

# d 3  dd 03  nth 3rd  word third | month March  mon Mar  roman III  mm 03 | y 1998 | weekday, wd
_FORMS = """
{d} {month} {y}
{d}. {month} {y}
{nth} {month} {y}
{nth} of {month} {y}
the {nth} of {month}, {y}
{month} {d}, {y}
{month} {nth}, {y}
{month} the {nth}, {y}
{mon} {d}, {y}
{mon}. {d}, {y}
{d} {mon} {y}
{dd}-{mon}-{y}
{weekday}, {d} {month} {y}
{weekday} {nth} {month} {y}
{weekday}, {month} {d}, {y}
{weekday}, {month} {nth}, {y}
{weekday} the {nth} of {month} {y}
{wd}, {dd} {mon} {y}
{wd} {mon} {d} {y}
the {word} of {month} {y}
{word} {month} {y}
{month} the {word}, {y}
{month} {word}, {y}
{weekday}, the {word} of {month} {y}
{y} {month} {d}
{y}, {d} {month}
{y}-{mon}-{dd}
{y}/{mm}/{dd}
{y}.{mm}.{dd}
{y}{mm}{dd}
{d}.{roman}.{y}
year {y}, month {mm}, day {dd}
in {y}, on the {nth} of {month}
{month} {y}, the {nth}
""".strip().splitlines()

_SLOT = re.compile(r"\{(\w+)\}")
_CASES = (str, str.lower, str.upper)


def day(number: int) -> date:
    """Return day `number` after the first of the range."""
    return FIRST + timedelta(days=number)


def spellings() -> list[tuple[str, int]]:
    """Return every form: a pattern, in its own, small or capital letters where that differs."""
    cases = range(len(_CASES))
    return [(form, case) for form in _FORMS for case in cases if case == 0 or _has_words(form)]


def _has_words(form: str) -> bool:
    return any(name in form for name in ("month}", "mon}", "word}", "weekday}"))


def spell(when: date, form: tuple[str, int]) -> tuple[str, list[list[int]]]:
    """Return the spelling of a date and, for each of the 10 ISO characters, the places it came from.

    A year's digits map one to one; a month's and a day's two digits come from the digits where there
    are two, else from the whole word or digit. Hyphens come from nothing.
    """
    pattern, case = form
    slots = _slots(when)
    text, places = "", {}
    for i, piece in enumerate(_SLOT.split(pattern)):
        word = slots[piece] if i % 2 else piece
        if i % 2:
            places[_ROLES.get(piece, "")] = _targets(piece, range(len(text), len(text) + len(word)), word)
        text += word
    sources = [*places["year"], [], *places["month"], [], *places["day"]]
    return _CASES[case](text), sources


_ROLES = {
    **dict.fromkeys(("d", "dd", "nth", "word"), "day"),
    **dict.fromkeys(("month", "mon", "roman", "mm"), "month"),
    "y": "year",
}


def _targets(slot: str, span: range, word: str) -> list[list[int]]:
    """Return for each target character of a slot the places in the text it came from."""
    digits = [place for place, letter in zip(span, word, strict=True) if letter.isdigit()]
    if slot == "y" or len(digits) == 2:
        return [[place] for place in digits]
    whole = digits or list(span)
    return [whole, whole]


def _slots(when: date) -> dict[str, str]:
    month, weekday = _MONTHS[when.month - 1], _WEEKDAYS[when.weekday()]
    days = {"d": str(when.day), "dd": f"{when.day:02}", "nth": f"{when.day}{_suffix(when.day)}"}
    months = {"month": month, "mon": month[:3], "roman": _ROMAN[when.month - 1], "mm": f"{when.month:02}"}
    rest = {"word": _ORDINALS[when.day - 1], "y": str(when.year), "weekday": weekday, "wd": weekday[:3]}
    return {**days, **months, **rest}


def _suffix(number: int) -> str:
    if number in (11, 12, 13):
        return "th"
    return {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
