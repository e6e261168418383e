import pytest
from explained import settings_of, task_and_data

from weft.explain import count_parts, part_of


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("source_input.table", "embedding"),
        ("encoder.layers.0.self_attention.query.weight", "encoder layer 1"),
        ("encoder.backwards.1.weights.weight_hh", "encoder layer 2"),
        ("encoder.backbone.blocks.3.first.v", "encoder layer 4"),
        ("encoder.norm.weight", "encoder, rest"),
        ("backbone.layers.2.feedforward.inner.weight", "decoder layer 3"),
        ("backbone.layers.2.cross_attention.key.weight", "attention"),
        ("backbone.reader.readout.weight", "attention"),
        ("backbone.bridges.0.weight", "bridge"),
        ("network.head.bias", "head"),
        ("linear.weight", "other"),
    ],
)
def test_part_of_a_name(name, part):
    assert part_of(name) == part


def test_a_shared_table_is_counted_once():
    settings = settings_of(
        data={"shared": True}, model={"family": "lstm", "width": 8, "layers": 1, "bidirectional": False}
    )
    model = task_and_data(settings, [3])[0].build(settings.model)
    assert count_parts(model) == {
        "embedding": 40 * 8,  # source, target and head
        "encoder layer 1": 4 * 8 * (8 + 8 + 2),
        "bridge": 8 * 8 + 8,
        "attention": 2 * 8 * 8 + 8 + (16 * 8 + 8),  # additive: W_q, W_k, w; readout
        "decoder layer 1": 4 * 8 * (16 + 8 + 2),  # its input is [x; c]
        "head": 40,
    }
