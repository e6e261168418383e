import dataclasses
import json

import pytest
import torch
from explained import settings_of, task_and_data

from weft.explain import Speed, Subject, explain, render
from weft.models import solve_budget
from weft.training import TrainConfig


def explained(lengths=(5, 6, 7), probe=None, train=None, memory=None, **values):
    settings = settings_of(**values)
    task, data = task_and_data(settings, list(lengths))
    solved = solve_budget(settings.model, task.build)
    common = dataclasses.replace(solved.common, budget=settings.model.common.budget)
    config = dataclasses.replace(solved, common=common)
    subject = Subject(task, config, train or TrainConfig(), data, memory=memory)
    return explain(subject, probe)


def test_a_short_reach_is_warned_of():
    model = {"family": "tcn", "width": 8, "layers": 1, "kernel": 3}
    seen = explained((5, 6, 7), model=model)
    assert [(r.side, r.sees, r.longest) for r in seen.reaches] == [("encoder", 5, 7), ("decoder", 5, 8)]
    assert "The encoder sees 5 steps, but the longest item has 7." in seen.warnings()[0]
    assert explained((2, 3, 4), model=model).warnings() == []


def test_a_budget_is_held_against_what_came():
    seen = explained(model={"family": "lstm", "budget": "100K", "layers": 1})
    assert seen.budget is not None
    assert seen.budget.wanted == 100_000
    assert seen.budget.deviation == pytest.approx(seen.parameters / 100_000 - 1)
    assert abs(seen.budget.deviation) < 0.02
    assert "for 100 k parameters" in render(seen)


def test_time_follows_from_the_probe():
    seen = explained(
        probe=lambda feed: Speed(8, 2.0, 1000),
        train=TrainConfig(epochs=2),
        model={"family": "lstm", "width": 8},
    )
    assert seen.plan.tokens == 2 * (5 + 6 + 7)
    assert seen.seconds == pytest.approx(36 / 500)
    assert seen.flops == pytest.approx(36 * seen.both)


def test_what_cannot_fit_is_said_and_not_tried():
    def probe(feed):
        raise AssertionError("was tried")

    seen = explained(probe=probe, memory=1000, model={"family": "lstm", "width": 8})
    assert "more memory than the device has" in seen.warnings()[0]


def test_a_model_no_memory_holds_is_explained():
    seen = explained(model={"family": "transformer", "width": 65536, "layers": 8, "heads": 8})
    assert seen.parameters > 1e12 / 4
    assert sum(seen.memory.training.values()) > 16 * seen.parameters


def test_chance_is_left_alone():
    torch.manual_seed(3)
    before = torch.get_rng_state()
    explained(model={"family": "lstm", "width": 8})
    assert torch.equal(torch.get_rng_state(), before)


def test_plain_and_rendered():
    seen = explained(model={"family": "transformer", "width": 16})
    plain = json.loads(json.dumps(seen.plain()))
    assert plain["parameters"] == sum(part["parameters"] for part in plain["parts"])
    assert plain["both"] == 3 * plain["forward"]
    text = render(seen)
    for words in ("embedding", "encoder layer 2", "attention", "head", "FLOPs a token", "activations"):
        assert words in text
