from functools import partial
from types import SimpleNamespace

import pytest
import torch
from small_models import BOTH, FAMILIES, OTHER, SHAPES, TEXT

from weft.core.errors import ConfigError
from weft.models import build_causal, build_translation, count_parameters, parse_model, solve_budget
from weft.models.budget import count_on_meta


def solved(family: str, shape: str, budget: str, **values):
    needed, build = SHAPES[shape]
    config = parse_model({"family": family, "budget": budget, **values}, needed)
    config = solve_budget(config, build)
    return config, count_on_meta(config, build)


def at_width(family: str, shape: str, width: int, **values) -> int:
    needed, build = SHAPES[shape]
    return count_on_meta(parse_model({"family": family, "width": width, **values}, needed), build)


def check_budget(family: str, shape: str, factor: float) -> None:
    wanted = int(at_width(family, shape, 104) * factor) + 11
    config, got = solved(family, shape, str(wanted))
    assert abs(got / wanted - 1) <= 0.01
    assert config.common.width >= 96


QUICK = [("transformer", shape, 1.73) for shape in SHAPES] + [
    (family, shape, (1.0, 1.37, 1.73)[(i + j) % 3])
    for i, family in enumerate(FAMILIES[:-1])
    for j, shape in enumerate(("causal", "pooled", "shared"))
]
GRID = [
    (family, shape, factor) for family in FAMILIES for shape in SHAPES for factor in (1.0, 1.21, 1.73, 9.0)
]


@pytest.mark.parametrize(("family", "shape", "factor"), QUICK)
def test_a_budget_is_met_within_one_percent_from_width_100_on(family, shape, factor):
    check_budget(family, shape, factor)


@pytest.mark.long
@pytest.mark.parametrize(("family", "shape", "factor"), GRID)
def test_a_budget_is_met_for_every_family_shape_and_size(family, shape, factor):
    check_budget(family, shape, factor)


@pytest.mark.parametrize("values", [
    {"attention": "multihead", "attention_heads": 3}, {"encoder": {"family": "transformer"}, "heads": 6},
    {"decoder": {"family": "transformer"}}, {"attention": "none"},
])  # fmt: skip
def test_mixed_sides_and_their_heads(values):
    wanted = at_width("lstm", "translation", 120, **values) + 1000
    _, got = solved("lstm", "translation", str(wanted), **values)
    assert abs(got / wanted - 1) <= 0.01


def test_a_smaller_width_is_taken_where_a_large_vocabulary_leaves_the_finer_knob_no_room():
    vocabulary = SimpleNamespace(kind="text", size=8000)
    build = partial(build_translation, vocabulary, vocabulary)
    values = {
        "budget": "300K",
        "layers": 3,
        "encoder": {"family": "lstm"},
        "decoder": {"family": "transformer"},
    }
    config = solve_budget(parse_model(values, BOTH), build)
    assert abs(count_on_meta(config, build) / 300_000 - 1) <= 0.01


def test_without_a_budget_nothing_changes():
    config = parse_model({"family": "lstm"}, ("decoder",))
    assert solve_budget(config, SHAPES["causal"][1]) is config


def test_what_is_built_has_what_was_counted():
    config, got = solved("gru", "translation", "60K")
    torch.manual_seed(0)
    assert count_parameters(SHAPES["translation"][1](config)) == got


def test_a_budget_below_the_smallest_model_is_refused():
    with pytest.raises(
        ConfigError, match=r"`model.budget` must be at least [\d,]+, the smallest such model, but is 5"
    ):
        solved("lstm", "causal", "5")


def test_tied_and_shared_tables_count_once():
    def count(source, target, **values):
        return count_parameters(build_translation(source, target, parse_model({"width": 8, **values}, BOTH)))

    one, two = count(TEXT, TEXT), count(TEXT, OTHER)
    assert count(TEXT, TEXT, tied=False) - one == TEXT.size * 8
    assert two - one == OTHER.size * 8 + OTHER.size - TEXT.size  # a second table, and another head's bias
    assert count(TEXT, OTHER, tied=False) - two == OTHER.size * 8


def test_a_language_models_head_is_its_table():
    model = build_causal(TEXT, TEXT.size, parse_model({"width": 8}, ("decoder",)))
    assert model.head.weight is model.input.table
    loose = build_causal(TEXT, TEXT.size, parse_model({"width": 8, "tied": False}, ("decoder",)))
    assert loose.head.weight is not loose.input.table


def test_frozen_parameters_do_not_count():
    layer = torch.nn.Linear(3, 2)
    layer.bias.requires_grad_(False)
    assert count_parameters(layer) == 6
