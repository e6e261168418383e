from collections import Counter

import pytest

from weft.core.errors import DataError
from weft.data import vocabulary
from weft.data.vocabulary import PAD, UNK, Vocabulary, choose


def test_words_are_numbered_from_four():
    words = Vocabulary(["b", "a"])
    assert words.size == 6
    assert words.ids(["a", "b", "c"]) == [5, 4, UNK]
    assert words.names([5, 4, UNK, PAD]) == ["a", "b", "<unk>", "<pad>"]


def test_special_names_are_no_words():
    words = Vocabulary(["a"])
    assert words.ids(["<pad>", "<unk>", "<bos>", "<eos>"]) == [UNK] * 4


def test_the_most_frequent_stay_and_ties_go_by_name():
    counts = Counter({"x": 1, "b": 3, "a": 3, "c": 9, "<unk>": 99})
    assert choose(counts, size=7).words == ("c", "a", "b")
    assert choose(counts, min_count=2).words == ("c", "a", "b")


def test_an_absurd_size_is_refused(monkeypatch):
    monkeypatch.setattr(vocabulary, "LARGEST", 3)
    with pytest.raises(DataError, match="at most 3 entries, but this one has 4"):
        Vocabulary("abcd")
