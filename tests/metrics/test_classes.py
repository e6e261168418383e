"""Metrics of labels against hand-worked numbers."""

import numpy as np
import pytest

from weft.core.errors import DataError
from weft.metrics import (
    accuracy,
    confusion,
    label_macro_f1,
    label_micro_f1,
    label_set_accuracy,
    macro_f1,
    token_accuracy,
    token_macro_f1,
)

PREDICTED = np.array([0, 0, 1, 1, 2, 0])
TRUE = np.array([0, 1, 1, 1, 0, 0])


def test_accuracy_counts_equal_labels():
    assert accuracy(PREDICTED, TRUE).value == pytest.approx(4 / 6)
    assert accuracy(["a", "b"], ["a", "c"]).value == 0.5


def test_a_label_unseen_in_training_is_wrong():
    assert accuracy([0, 1], [0, -1]).value == 0.5


def test_macro_f1_averages_the_labels():
    # label 0: hits 2, predicted 3, true 3: 2/3. label 1: hits 2, predicted 2, true 3: 4/5. label 2: 0.
    assert macro_f1(PREDICTED, TRUE).value == pytest.approx((2 / 3 + 4 / 5 + 0) / 3)


def test_macro_f1_of_names_is_that_of_ids():
    names = np.array(["x", "y", "z"])
    assert macro_f1(names[PREDICTED], names[TRUE]).value == macro_f1(PREDICTED, TRUE).value


def test_macro_f1_has_an_interval_around_it():
    measured = macro_f1(np.tile(PREDICTED, 20), np.tile(TRUE, 20))
    low, high = measured.interval()
    assert 0.3 < low < measured.value < high < 0.65


def test_macro_f1_of_a_part_knows_only_its_labels():
    assert macro_f1(PREDICTED, TRUE).where(TRUE == PREDICTED).value == 1.0


def test_the_confusion_matrix_has_true_rows_and_predicted_columns():
    assert confusion(PREDICTED, TRUE, 3).tolist() == [[2, 0, 1], [1, 2, 0], [0, 0, 0]]


def test_unseen_references_have_no_row():
    assert confusion([0, 1, 1], [0, -1, 1], 2).tolist() == [[1, 0], [0, 1]]


def test_tokens_are_counted_over_all_items():
    measured = token_accuracy([[1, 2, 3], [4]], [[1, 2, 0], [0]])
    assert measured.value == 0.5
    assert measured.where(np.array([True, False])).value == pytest.approx(2 / 3)


def test_unequal_items_are_refused():
    with pytest.raises(DataError, match="2 predictions and 3 references"):
        token_accuracy([[1, 2]], [[1, 2, 3]])


SETS = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 0]])
TRUE_SETS = np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]])


def test_several_labels_an_item():
    # label 0: 1 hit of 1 and 1. label 1: 1 hit, 2 predicted, 2 true. label 2: never.
    assert label_micro_f1(SETS, TRUE_SETS).value == pytest.approx(2 * 2 / (3 + 3))
    assert label_macro_f1(SETS, TRUE_SETS).value == pytest.approx((1 + 0.5 + 0) / 3)
    assert label_set_accuracy(SETS, TRUE_SETS).value == pytest.approx(1 / 3)


def test_sets_of_other_width_are_refused():
    with pytest.raises(DataError, match="must have the shape"):
        label_micro_f1(SETS, TRUE_SETS[:, :2])


def test_token_macro_f1_by_hand():
    told, wanted = [[0, 1, 1], [2]], [[0, 1, 0], [-1]]
    found = token_macro_f1(told, wanted)
    # labels: 0 has 2 * 1 / (1 + 2), 1 has 2 * 1 / (2 + 1), 2 and -1 occur on one side only
    assert found.value == pytest.approx((2 / 3 + 2 / 3 + 0 + 0) / 4)
    assert len(found) == 2
    flat = macro_f1(
        np.concatenate([np.array(p) for p in told]), np.concatenate([np.array(r) for r in wanted])
    )
    assert found.value == pytest.approx(flat.value)


def test_token_macro_f1_counts_only_labels_that_occur_among_the_items_measured():
    found = token_macro_f1([[0, 0], [5]], [[0, 0], [4]])
    assert found.where(np.array([True, False])).value == 1
    assert found.value == pytest.approx(1 / 3)
