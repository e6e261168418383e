"""The Transformers of 2017: parameters, and the arithmetic their training took."""

import dataclasses

import pytest
import torch
from explained import settings_of, task_and_data

from weft.explain import Subject, count_parts, explain

STEP_TOKENS = 25_000  # target tokens a step, and about as many of the source
BASE = {"width": 512, "heads": 8, "feedforward": 2048}
BIG = {"width": 1024, "heads": 16, "feedforward": 4096}


def paper(size):
    model = {"family": "transformer", "layers": 6, "norm": "post", "tied": True, **size}
    return settings_of(data={"vocabulary": 37_000, "shared": True}, model=model)


def parameters(settings):
    with torch.device("meta"):
        return sum(count_parts(task_and_data(settings, [4])[0].build(settings.model)).values())


@pytest.mark.parametrize(("size", "millions"), [(BASE, 65), (BIG, 213)])
def test_parameters_of_the_paper(size, millions):
    assert parameters(paper(size)) / 1e6 == pytest.approx(millions, rel=0.03)


def test_parameters_of_base_by_hand():
    d, inner, vocabulary = 512, 2048, 37_000
    attention = 4 * (d * d + d)
    feedforward, norm = 2 * d * inner + inner + d, 2 * d
    encoder = 6 * (attention + feedforward + 2 * norm)
    decoder = 6 * (2 * attention + feedforward + 3 * norm)
    assert parameters(paper(BASE)) == vocabulary * d + encoder + decoder + vocabulary


@pytest.mark.parametrize(
    ("size", "steps", "hours", "stated", "exact"),
    [(BASE, 100_000, 12, 3.3e18, 9.8e17), (BIG, 300_000, 84, 2.3e19, 9.9e18)],
)
def test_training_cost_of_the_paper(size, steps, hours, stated, exact):
    """The paper states hours x 8 GPUs x 9.5 TFLOP/s they could do; counted, a third to a half was used."""
    assert hours * 3600 * 8 * 9.5e12 == pytest.approx(stated, rel=0.02)
    settings = paper(size)
    settings = dataclasses.replace(settings, train=dataclasses.replace(settings.train, steps=steps))
    task, data = task_and_data(settings, [24] * 2)
    explanation = explain(Subject(task, settings.model, settings.train, data, assumed="sentences of 24"))
    cost = explanation.both * steps * STEP_TOKENS
    assert cost == pytest.approx(exact, rel=0.05)
    assert 0.25 < cost / stated < 0.5
