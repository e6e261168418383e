"""The most frequent label by hand."""

import numpy as np

from weft.data import LabelField
from weft.tasks.baselines import majority_label, majority_score


def test_the_most_frequent_label_is_told():
    assert majority_label(["b", "a", "b"], 2) == ["b", "b"]


def test_of_equals_the_first_by_name():
    assert majority_label(["b", "a"], 1) == ["a"]


def test_one_label_told_always_is_scored_and_an_unseen_one_is_wrong():
    field = LabelField(["a", "b"], frequent="b")
    assert majority_score(field, np.array([1, 0, 1, -1])) == {"baseline": {"label": "b", "accuracy": 0.5}}
    assert majority_score(LabelField(["a", "b"]), np.array([1])) == {}
