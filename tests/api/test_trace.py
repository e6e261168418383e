import numpy as np
import pytest
import torch

from weft.api import train
from weft.api.trace import RunTrace, join_steps
from weft.core.errors import InputError
from weft.core.taps import Trace


def made(**records):
    return RunTrace(Trace(records), ["a", "b", "c"], ["x", "y"])


def test_steps_are_laid_side_by_side():
    steps = [torch.full((1, 2, 1, 3), float(step)) for step in range(4)]
    table = join_steps(steps)
    assert table.shape == (2, 4, 3)
    np.testing.assert_array_equal(table[1, :, 0], [0, 1, 2, 3])


def test_layers_are_cut_to_the_words_shown_and_averaged():
    first, second = torch.zeros(1, 2, 3, 3), torch.ones(1, 2, 3, 3)
    first[0, 1] = 4
    trace = made(**{"layer0/cross_attention": [first], "layer1/cross_attention": [second]})
    assert [layer.shape for layer in trace.attention()] == [(2, 2, 3)] * 2
    assert trace.weights()[0, 0] == (0 + 4 + 1 + 1) / 4
    assert trace.weights(layer=0)[0, 0] == 2
    assert trace.weights(layer=0, head=1)[0, 0] == 4


def test_attention_to_a_source_comes_before_attention_to_itself():
    trace = made(self_attention=[torch.ones(1, 1, 2, 3)], cross_attention=[torch.zeros(1, 1, 2, 3)])
    assert not trace.attention()[0].any()
    assert trace.names() == ["self_attention", "cross_attention"]


SERIES, PIECE = [[float(step % 7)] for step in range(60)], [[60, 64], [62], [60, 67]]
READ = {
    "forecast": (
        [np.array(SERIES)] * 4,
        {"name": "forecast", "history": 12, "horizon": 2},
        {"patch": 4},
        SERIES,
        3,
    ),
    "music": ([np.eye(3, 88, 40, dtype=np.uint8)] * 40, "music", {}, PIECE, 3),
}


@pytest.mark.parametrize("name", READ)
def test_what_predict_reads_can_be_traced(name, tmp_path):
    rows, task, values, source, size = READ[name]
    model = {"family": "transformer", "width": 8, "heads": 2, "layers": 1, **values}
    run = train(rows, task=task, model=model, valid=rows, run=tmp_path / "run", train={"steps": 1})
    (weights,) = run.trace(source).attention()
    assert weights.shape == (2, size, size)
    np.testing.assert_allclose(weights.sum(2), 1, atol=1e-6)
    with pytest.raises(InputError, match="at least one element"):
        run.trace([])


@pytest.mark.parametrize(
    ("choice", "line"), [({"layer": 3}, "`layer` must be from 0 to 0"), ({"head": 1}, "`head`")]
)
def test_what_is_not_there_is_refused(choice, line):
    with pytest.raises(InputError, match=line):
        made(cross_attention=[torch.ones(1, 1, 2, 3)]).weights(**choice)


def test_a_model_without_attention_says_so():
    with pytest.raises(InputError, match=r"no attention to look at. Try model\.attention=additive"):
        made(gates=[torch.ones(1)]).attention()


def test_a_plot_is_a_figure_of_the_weights():
    figure = made(cross_attention=[torch.ones(1, 1, 2, 3)]).plot()
    assert figure.axes[0].get_images()[0].get_array().shape == (2, 3)
