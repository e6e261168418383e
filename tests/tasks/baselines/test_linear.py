"""Least squares in closed form."""

import numpy as np

from weft.tasks.baselines import linear_forecast, ridge, tell_linear


def test_an_exact_line_is_found():
    x = np.random.default_rng(0).normal(size=(50, 3))
    y = x @ [[1.0], [-2.0], [0.5]] + 4
    model = ridge(x, y)
    np.testing.assert_allclose(model.weight[:, 0], [1, -2, 0.5], atol=1e-9)
    np.testing.assert_allclose(model.bias, [4], atol=1e-9)


def test_a_penalty_pulls_towards_the_mean():
    x, y = np.array([[-1.0], [1.0]]), np.array([[1.0], [5.0]])
    model = ridge(x, y, penalty=1.0)  # (2 + 2)^-1 * 4 = 1
    np.testing.assert_allclose([model.weight[0, 0], model.bias[0]], [1, 3])


def test_a_wave_with_any_level_is_told():
    steps = np.arange(60)
    series = np.stack([np.sin(steps / 3), 7 + np.sin(steps / 3 + 1)], 1)
    windows = np.stack([series[i : i + 12] for i in range(48)])
    history, future = windows[:, :8], windows[:, 8:]
    model = linear_forecast(history[:40], future[:40], penalty=1e-9)
    np.testing.assert_allclose(tell_linear(model, history[40:] + 3), future[40:] + 3, atol=1e-3)
