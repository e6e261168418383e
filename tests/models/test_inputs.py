from types import SimpleNamespace

import pytest
import torch

from weft.core.errors import ConfigError
from weft.core.sequences import Sequences
from weft.data import UNK
from weft.models.config import Common
from weft.models.inputs import TokenInput, VectorInput, WordInput, make_input


def test_tokens_are_looked_up_and_scaled():
    layer, ids = TokenInput(5, 4, 0.0), torch.tensor([[1, 2], [4, 0]])
    y = layer(Sequences.full(ids))
    assert torch.equal(y.data, layer.table[ids] * 2)  # sqrt(4)
    assert torch.equal(layer.embed(ids[:, 0]), layer.table[ids[:, 0]] * 2)


def test_a_large_table_gives_inputs_of_norm_sqrt_width():
    norms = TokenInput(1000, 64, 0.0).embed(torch.arange(1000)).norm(dim=1)
    assert norms.mean().item() == pytest.approx(8, rel=0.02)


def test_numbers_are_mapped_and_bytes_too():
    layer = VectorInput(3, 4, 0.0)
    frames = torch.randint(0, 2, (2, 5, 3), dtype=torch.uint8)
    x = torch.randn(2, 5, 3)
    assert torch.allclose(
        layer(Sequences.full(x)).data, x @ layer.linear.weight.T + layer.linear.bias, atol=1e-6
    )
    entry = make_input(SimpleNamespace(kind="frames", width=3), 4, Common(input_dropout=0.0))
    assert entry(Sequences.full(frames)).data.shape == (2, 5, 4)


def words() -> Sequences:
    """Return rows of [word, four characters]; the word 5 twice, and 1 (unknown) spelled in two ways."""
    rows = torch.tensor([[[5, 2, 3, 0, 0], [1, 2, 2, 2, 0]], [[5, 2, 3, 0, 0], [1, 4, 4, 0, 0]]])
    return Sequences.full(rows)


def test_letters_tell_unknown_words_apart():
    with_letters = WordInput(6, 5, 8, 4, 0.0).eval()(words()).data
    without = WordInput(6, 0, 8, 4, 0.0).eval()(words()).data
    assert torch.allclose(with_letters[0, 0], with_letters[1, 0])
    assert not torch.allclose(with_letters[0, 1], with_letters[1, 1])
    assert torch.equal(without[0, 1], without[1, 1])


def test_forgotten_words_are_read_as_unknown_in_training():
    layer = WordInput(6, 0, 8, 4, 0.0, forget=0.5)
    ids = torch.full((1, 1000, 1), 5)
    read = layer.train()(Sequences.full(ids)).data[0]
    unknown = layer.words.embed(torch.tensor([UNK]))[0]
    share = (read == unknown).all(1).double().mean().item()
    assert share == pytest.approx(0.5, abs=0.06)
    assert not (layer.eval()(Sequences.full(ids)).data[0] == unknown).all(1).any()


def test_a_field_no_input_knows_is_refused():
    with pytest.raises(ConfigError, match=r"There is no kind of input `txt`. Did you mean `text`\?"):
        make_input(SimpleNamespace(kind="txt"), 4, Common())
