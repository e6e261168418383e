"""The forecasting shape: levels taken off and put back, channels kept apart, patches, the linear part."""

import pytest
import torch

from weft.core.errors import ConfigError
from weft.data import VectorsField
from weft.models import build_forecast, parse_model


def make_model(channels=2, history=8, horizon=3, family="lstm", patch=2, **options):
    torch.manual_seed(1)
    shape = {"family": family, "width": 8, "layers": 1, "patch": patch, "input_dropout": 0, "dropout": 0}
    config = parse_model(shape, ("encoder",))
    return build_forecast(VectorsField(channels), history, horizon, config, **options).double()


@pytest.mark.parametrize("family", ["rnn", "lstm", "gru", "tcn", "transformer"])
@pytest.mark.parametrize("separate", [False, True])
def test_any_family_tells_every_channel(family, separate):
    model = make_model(family=family, separate=separate)
    assert model(torch.randn(5, 8, 2, dtype=torch.float64)).shape == (5, 3, 2)


def test_separate_channels_do_not_see_each_other():
    model, x = make_model(separate=True), torch.randn(4, 8, 2, dtype=torch.float64)
    other = x.clone()
    other[:, :, 1] += 3 * torch.randn(4, 8, dtype=torch.float64)
    torch.testing.assert_close(model(x)[..., 0], model(other)[..., 0])
    torch.testing.assert_close(model(x.flip(2)), model(x).flip(2))


def test_joint_channels_do():
    model, x = make_model(separate=False), torch.randn(4, 8, 2, dtype=torch.float64)
    other = x.clone()
    other[:, :, 1] += 3 * torch.randn(4, 8, dtype=torch.float64)
    assert not torch.allclose(model(x)[..., 0], model(other)[..., 0])


@pytest.mark.parametrize("separate", [False, True])
def test_a_shift_of_the_history_shifts_the_forecast(separate):
    x = torch.randn(4, 8, 2, dtype=torch.float64)
    for normalise in ("last", "window"):
        model = make_model(separate=separate, normalise=normalise)
        torch.testing.assert_close(model(x + 7), model(x) + 7)


def test_window_normalisation_also_follows_the_scale():
    model, x = make_model(normalise="window"), 100 * torch.randn(4, 8, 2, dtype=torch.float64)
    torch.testing.assert_close(model(5 * x), 5 * model(x), rtol=1e-4, atol=1e-4)


def test_none_leaves_the_level_alone():
    model, x = make_model(normalise="none"), torch.randn(4, 8, 2, dtype=torch.float64)
    assert not torch.allclose(model(x + 7), model(x) + 7)


def test_the_linear_part_is_added_to_the_network():
    model = make_model(normalise="none", channels=1)
    for parameter in model.network.head.parameters():
        parameter.data.zero_()
    x = torch.randn(4, 8, 1, dtype=torch.float64)
    expected = x[..., 0] @ model.linear.weight.T + model.linear.bias
    torch.testing.assert_close(model(x)[..., 0], expected)
    assert make_model(linear=False).linear is None


def test_a_patch_that_does_not_divide_the_history_is_refused():
    with pytest.raises(
        ConfigError, match=r"`model.patch` must divide `task.history` \(8\), but is 3. Try 2."
    ):
        make_model(patch=3)
