"""Rates against hand-worked values and torch's own schedulers."""

import math

import pytest
import torch

from weft.training import TrainConfig
from weft.training.schedules import Schedule


def rates(steps, total=0, **values):
    schedule = Schedule(TrainConfig(lr=0.5, **values), total)
    return [schedule.rate(step) for step in steps]


def test_inverse_square_root_is_the_lectures_rule_with_its_peak_at_lr():
    width, warmup = 512, 40
    steps = [1, 20, 40, 41, 160]
    lectures = [width**-0.5 * min(step**-0.5, step * warmup**-1.5) for step in steps]
    peak = width**-0.5 * warmup**-0.5
    assert rates(steps, schedule="inverse_sqrt", warmup=warmup) == pytest.approx(
        [0.5 * r / peak for r in lectures]
    )
    assert rates([40, 160], schedule="inverse_sqrt", warmup=warmup) == pytest.approx([0.5, 0.25])


def test_constant_rises_over_the_warm_up_and_stays():
    assert rates([1, 2, 4, 5, 100], warmup=4) == pytest.approx([0.125, 0.25, 0.5, 0.5, 0.5])
    assert rates([1, 7]) == [0.5, 0.5]


def test_cosine_is_torchs_after_the_warm_up():
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=0.5)
    peer = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=20)
    expected = []
    for _ in range(20):
        optimizer.step()
        peer.step()
        expected.append(peer.get_last_lr()[0])
    assert rates(range(6, 26), total=25, schedule="cosine", warmup=5) == pytest.approx(expected, abs=1e-12)
    assert rates([25, 99], total=25, schedule="cosine", warmup=5) == [0.0, 0.0]
    assert rates([15], total=20, schedule="cosine", warmup=10) == pytest.approx(
        [0.25 * (1 + math.cos(math.pi / 2))]
    )


def test_plateau_lowers_the_rate_after_waiting_and_remembers_through_a_save():
    schedule = Schedule(TrainConfig(lr=0.5, schedule="plateau", plateau_patience=2, plateau_factor=0.1), 0)
    for improved in (True, False, True, False):
        schedule.observe(improved)
    assert schedule.rate(9) == 0.5
    other = Schedule(TrainConfig(lr=0.5, schedule="plateau", plateau_patience=2, plateau_factor=0.1), 0)
    other.load(schedule.save())
    other.observe(False)
    assert other.rate(9) == pytest.approx(0.05)


def test_setting_changes_every_group():
    optimizer = torch.optim.SGD([{"params": [torch.zeros(1)]}, {"params": [torch.ones(1)]}], lr=9.0)
    assert Schedule(TrainConfig(lr=0.5), 0).set(optimizer, 3) == 0.5
    assert [group["lr"] for group in optimizer.param_groups] == [0.5, 0.5]
