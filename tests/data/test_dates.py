"""Dates: every spelling names one date, and its alignment points at what the date came from."""

import re
from datetime import date

import pytest

from weft.data.dates import DAYS, day, spell, spellings

ALL = spellings()


def test_there_are_many_spellings():
    assert len({form for form, _ in ALL}) >= 20
    assert len({spell(date(1998, 3, 3), form)[0] for form in ALL}) == len(ALL)


def test_a_worked_case():
    text, sources = spell(date(1998, 3, 5), ("{weekday}, the {word} of {month} {y}", 0))
    assert text == "Thursday, the fifth of March 1998"
    pointed = ["".join(text[i] for i in places) for places in sources]
    assert pointed == ["1", "9", "9", "8", "", "March", "March", "", "fifth", "fifth"]


def test_two_digits_are_pointed_at_one_by_one():
    text, sources = spell(date(2031, 11, 22), ("{y}/{mm}/{dd}", 0))
    assert text == "2031/11/22"
    assert sources == [[0], [1], [2], [3], [], [5], [6], [], [8], [9]]


@pytest.mark.parametrize(
    ("number", "word"),
    [(1, "1st"), (2, "2nd"), (3, "3rd"), (4, "4th"), (11, "11th"), (12, "12th"), (13, "13th")],
)
def test_ordinals(number, word):
    assert spell(date(2000, 1, number), ("{nth} {month} {y}", 0))[0].startswith(word)


def test_ordinal_words_end_right():
    last = [
        spell(date(2000, 1, number), ("{word} {month} {y}", 0))[0].split()[0]
        for number in (9, 20, 21, 29, 30, 31)
    ]
    assert last == ["ninth", "twentieth", "twenty-first", "twenty-ninth", "thirtieth", "thirty-first"]


@pytest.mark.parametrize("form", ALL, ids=lambda form: f"{form[0]}-{form[1]}")
def test_no_spelling_stands_for_two_dates(form):
    """Dates that a spelling might mix up (days and months below 13, weekdays apart) give different texts."""
    days = [
        date(year, month, number)
        for year in (1999, 2011)
        for month in (1, 2, 3, 11, 12)
        for number in (1, 2, 3, 11, 12, 21)
    ]
    assert len({spell(when, form)[0] for when in days}) == len(days)


@pytest.mark.parametrize("form", ALL, ids=lambda form: f"{form[0]}-{form[1]}")
def test_year_digits_are_pointed_at(form):
    text, sources = spell(date(1987, 12, 24), form)
    assert "".join(text[places[0]] for places in sources[:4]) == "1987"
    assert all(sources[i] for i in (5, 6, 8, 9))
    assert sources[4] == sources[7] == []


def test_no_spelling_is_read_two_ways():
    """No text of one date is a text of another, whatever the forms."""
    seen: dict[str, date] = {}
    for number in range(0, DAYS, 1097):
        for form in ALL:
            when = day(number)
            assert seen.setdefault(spell(when, form)[0], when) == when


def test_days_span_two_centuries():
    assert (day(0), day(DAYS - 1)) == (date(1900, 1, 1), date(2099, 12, 31))
    assert not any(re.search(r"\{|\}", spell(day(5), form)[0]) for form in ALL)
