"""The most frequent tag of each word by hand."""

from weft.tasks.baselines import frequent_tags

TRAIN = [
    (["the", "run", "run"], ["D", "N", "V"]),
    (["run", "the", "xylem"], ["V", "D", "N"]),
]


def test_each_word_gets_its_most_frequent_tag():
    assert frequent_tags(TRAIN, [["the", "run"], []]) == [["D", "V"], []]


def test_a_new_word_is_taken_for_a_rare_one():
    assert frequent_tags(TRAIN, [["unheard"]]) == [["N"]]  # of the words seen once: xylem, N


def test_without_rare_words_any_word_tells():
    assert frequent_tags([(["a", "a"], ["X", "X"])], [["b"]]) == [["X"]]
