"""While tests run, shapes and types are checked on every call."""

import pytest
import torch
from jaxtyping import TypeCheckError

from weft.core.sequences import Sequences, length_mask


def test_a_wrong_shape_is_refused():
    with pytest.raises(TypeCheckError, match="lengths"):
        length_mask(torch.zeros(2, 3, dtype=torch.int64), 4)


def test_a_wrong_dtype_is_refused():
    with pytest.raises(TypeCheckError, match="lengths"):
        Sequences(torch.zeros(2, 3), torch.zeros(2))


def test_right_ones_pass():
    assert length_mask(torch.tensor([1, 2]), 2).tolist() == [[True, False], [True, True]]
