"""Buckets by length."""

import numpy as np
import pytest

from weft.evaluation import length_buckets


def test_buckets_hold_equal_numbers_from_short_to_long():
    lengths = np.random.default_rng(0).permutation(100) + 1
    buckets = length_buckets(lengths, 5)
    assert [int(mask.sum()) for mask in buckets] == [20] * 5
    assert [(lengths[mask].min(), lengths[mask].max()) for mask in buckets] == [
        (1, 20), (21, 40), (41, 60), (61, 80), (81, 100),
    ]  # fmt: skip


@pytest.mark.parametrize("lengths", [[7] * 9, [1], [1, 1, 1, 1, 1, 1, 9], list(range(3))])
def test_every_item_is_in_one_bucket_and_no_bucket_is_empty(lengths):
    buckets = np.stack(length_buckets(np.array(lengths), 5))
    assert (buckets.sum(0) == 1).all()
    assert buckets.any(1).all()


def test_items_of_one_length_share_a_bucket():
    lengths = np.array([3, 3, 3, 3, 8, 8, 8, 9])
    for length in (3, 8, 9):
        assert sum(bool(mask[lengths == length].any()) for mask in length_buckets(lengths, 4)) == 1


def test_a_bucket_too_small_to_say_anything_joins_its_neighbour():
    lengths = np.array(
        [10] * 236 + [11] * 123 + [12] * 11 + list(range(13, 20)) * 16 + list(range(20, 28)) * 15
    )
    buckets = length_buckets(lengths, 5)
    assert [(lengths[mask].min(), lengths[mask].max()) for mask in buckets] == [
        (10, 10), (11, 11), (12, 19), (20, 27),
    ]  # fmt: skip
