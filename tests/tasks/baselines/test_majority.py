"""The most frequent label by hand."""

from weft.tasks.baselines import majority_label


def test_the_most_frequent_label_is_told():
    assert majority_label(["b", "a", "b"], 2) == ["b", "b"]


def test_of_equals_the_first_by_name():
    assert majority_label(["b", "a"], 1) == ["a"]
