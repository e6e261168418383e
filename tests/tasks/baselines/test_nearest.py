"""The nearest sentence's translation by hand."""

from weft.tasks.baselines import nearest_targets

TRAIN = [("a dog runs", "ein hund läuft"), ("a cat sleeps", "eine katze schläft"), ("a dog", "ein hund")]


def test_the_source_that_shares_most_tells_its_target():
    assert nearest_targets(TRAIN, ["the cat now sleeps", "dog"]) == ["eine katze schläft", "ein hund"]


def test_a_word_that_all_hold_says_nothing():
    assert nearest_targets(TRAIN, ["a sleeps"]) == ["eine katze schläft"]


def test_nothing_shared_gives_the_first():
    assert nearest_targets(TRAIN, ["unheard", ""]) == ["ein hund läuft"] * 2
