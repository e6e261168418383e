"""Half the bits where it can be had, the way out where not."""

import pytest
import torch

from weft.core.errors import ConfigError
from weft.training.precision import Precision


def test_fp16_on_a_cpu_is_refused_with_the_way_out():
    with pytest.raises(
        ConfigError, match=r"fp16 needs a CUDA device, but the device is cpu\. Try bf16 or fp32"
    ):
        Precision("fp16", torch.device("cpu"))


@pytest.mark.parametrize(("name", "dtype"), [("fp32", torch.float32), ("bf16", torch.bfloat16)])
def test_products_are_made_in_the_precision_asked_for(name, dtype):
    with Precision(name, torch.device("cpu")).autocast():
        assert torch.nn.Linear(2, 2)(torch.ones(1, 2)).dtype == dtype


def test_without_scaling_an_overflow_is_an_error():
    assert not Precision("bf16", torch.device("cpu")).tolerates_overflow()


@pytest.mark.gpu
def test_fp16_leaves_out_a_step_that_overflows():
    device = torch.device("cuda")
    weight = torch.ones(1, device=device, requires_grad=True)
    optimizer = torch.optim.Adam([weight], fused=True)
    precision = Precision("fp16", device)
    precision.backward((weight * torch.tensor(float("inf"), device=device)).sum())
    precision.unscale(optimizer)
    precision.step(optimizer)
    assert weight.item() == 1.0
    assert precision.save()["scale"] == 128.0
