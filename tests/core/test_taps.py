import pytest
import torch

from weft.core.taps import listen, listening, scope, tap


def test_a_tap_is_the_identity_and_nobody_listens():
    x = torch.ones(2)
    assert tap(x, "x") is x
    assert not listening()


def test_what_is_tapped_is_recorded_in_order_under_its_scopes():
    with listen() as trace:
        assert listening()
        for value in (1.0, 2.0):
            with scope("layer0"), scope("head"):
                tap(torch.tensor(value), "weights")
        tap(torch.tensor(3.0), "out")
    assert trace.names() == ["layer0/head/weights", "out"]
    assert [float(x) for x in trace["layer0/head/weights"]] == [1.0, 2.0]
    assert not listening()


def test_a_record_holds_no_graph_and_the_value_keeps_its_own():
    x = torch.ones(2, requires_grad=True)
    with listen() as trace:
        y = tap(x * 2, "y")
    assert y.requires_grad
    assert not trace["y"][0].requires_grad


def test_the_inner_listener_hears_alone():
    with listen() as outer:
        with listen() as inner:
            tap(torch.ones(1), "a")
        tap(torch.ones(1), "b")
    assert (inner.names(), outer.names()) == (["a"], ["b"])


def test_scopes_and_listeners_end_with_an_error():
    with pytest.raises(RuntimeError, match="stop"), listen(), scope("s"):
        raise RuntimeError("stop")
    assert not listening()
    with listen() as trace:
        tap(torch.ones(1), "a")
    assert trace.names() == ["a"]
