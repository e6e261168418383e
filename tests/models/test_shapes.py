import pytest
import torch
from small_models import FAMILIES, OTHER, TEXT, VALUES, ids, translation

from weft.core.sequences import Sequences
from weft.models import build_causal, build_label, build_pooled, build_translation, parse_model
from weft.nn.attention import KINDS

ENCODER, DECODER = ("encoder",), ("decoder",)


def series(*lengths: int) -> Sequences:
    return Sequences.pad([torch.randn(n, 3).double() for n in lengths])


def pooled(pooling: str, family: str = "lstm"):
    config = parse_model({"width": 8, "pooling": pooling, "family": family}, ENCODER)
    return build_pooled(VALUES, 5, config).double().eval()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["summary", "mean", "max"])
def test_a_pooled_model_answers_each_row_as_if_alone(pooling, family):
    model, x = pooled(pooling, family), series(6, 1, 4, 0)
    y = model(x)
    assert y.shape == (4, 5)
    assert torch.allclose(y[3], model.head.bias)  # nothing pooled gives zeros
    for row, rows in enumerate(x.unpad()[:3]):
        assert torch.allclose(model(Sequences.full(rows.unsqueeze(0)))[0], y[row], atol=1e-10)


def test_pooling_by_hand():
    data = torch.tensor([[[1.0, -3.0], [3.0, -5.0], [9.0, 9.0]], [[9.0, 9.0]] * 3]).double()
    encoded = Sequences(data, torch.tensor([2, 0]))
    assert pooled("mean").pool(encoded).tolist() == [[2, -4], [0, 0]]
    assert pooled("max").pool(encoded).tolist() == [[3, -3], [0, 0]]


@pytest.mark.parametrize("pooling", ["summary", "mean", "max"])
def test_rows_that_are_all_empty(pooling):
    model = pooled(pooling)
    assert torch.allclose(
        model(Sequences(torch.zeros(2, 0, 3).double(), torch.tensor([0, 0]))), model.head.bias
    )


@pytest.mark.parametrize("family", FAMILIES)
def test_a_causal_model_step_by_step(family):
    torch.manual_seed(0)
    model = (
        build_causal(TEXT, TEXT.size, parse_model({"width": 8, "family": family}, DECODER)).double().eval()
    )
    x = ids(5, 5)
    want, _ = model(x)
    state = model.backbone.init_state(2)
    for t in range(5):
        y, state = model.step(x.data[:, t], state)
        assert torch.allclose(y, want.data[:, t], atol=1e-9)


def test_a_label_model_answers_every_element():
    model = build_label(TEXT, 5, parse_model({"width": 8, "family": "gru"}, ENCODER)).double().eval()
    y = model(ids(4, 2))
    assert y.data.shape == (2, 4, 5)
    assert y.lengths.tolist() == [4, 2]


def test_a_shared_vocabulary_has_one_table_and_two_do_not():
    shared = build_translation(TEXT, TEXT, parse_model({"width": 8}, (*ENCODER, *DECODER)))
    assert shared.source_input is shared.target_input
    assert shared.head.weight is shared.source_input.table
    apart = build_translation(TEXT, OTHER, parse_model({"width": 8}, (*ENCODER, *DECODER)))
    assert apart.source_input is not apart.target_input
    assert apart.head.weight is apart.target_input.table


PAIRS = [(encoder, decoder) for encoder in FAMILIES for decoder in FAMILIES]


@pytest.mark.parametrize(("encoder", "decoder"), PAIRS)
def test_step_by_step_is_all_at_once_for_every_pair(encoder, decoder):
    model, source, target = translation(encoder, decoder), ids(5, 2, 1, size=30), ids(4, 4, 4)
    want, memory = model(source, target), model.encode(source)
    state = model.backbone.init_state(3, memory=memory)
    for t in range(4):
        y, state = model.step(target.data[:, t], state, memory)
        assert torch.allclose(y, want.data[:, t], atol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_every_attention_looks_at_the_source(kind):
    """Also without attention: then the summary is all there is."""
    model = translation("gru", attention=kind)
    target, one = ids(3), ids(4, size=30)
    other = one.with_data(one.data.roll(1, 1))
    assert not torch.allclose(model(one, target).data, model(other, target).data, atol=1e-4)
    assert (model.condition is not None) is (kind == "none")


def test_padding_of_source_and_target_changes_nothing():
    model, source, target = translation("lstm", "transformer"), ids(5, 2, size=30), ids(2, 4)
    whole = model(source, target)
    for row in range(2):
        one = torch.tensor([row])
        x, y = source.rows(one), target.rows(one)
        alone = model(Sequences.full(x.data[:, : x.lengths[0]]), Sequences.full(y.data[:, : y.lengths[0]]))
        assert torch.allclose(alone.data[0], whole.data[row, : y.lengths[0]], atol=1e-9)
