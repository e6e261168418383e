"""Ridge on counts, and shares by hand."""

import numpy as np

from weft.tasks.baselines import ridge_on_counts
from weft.tasks.baselines.counts import symbol_shares


def test_shares_by_hand():
    expected = [[0.5, 0.25, np.log(4)], [0.0, 1.0, 0.0]]
    np.testing.assert_allclose(symbol_shares(["aacb", "b"], ["a", "b"]), expected)


def test_a_value_that_follows_a_share_is_told():
    texts = ["ab", "aab", "abb", "aabb", "abbb", "a", "b", "aaab"]
    shares = np.array([text.count("a") / len(text) for text in texts])
    told = ridge_on_counts(texts, 50 + 10 * shares, ["aaaab", "bbba"], penalty=1e-9)
    np.testing.assert_allclose(told, [58, 52.5], atol=1e-3)
