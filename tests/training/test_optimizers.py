"""Optimizers by name, and their memory through JSON."""

import json

import pytest
import torch
from torch import nn

from weft.nn.families import families
from weft.runs.packing import pack, unpack
from weft.training import TrainConfig, build_optimizer
from weft.training.optimizers import Memory


def one_step(model, optimizer):
    model(torch.ones(1, 3)).square().sum().backward()
    optimizer.step()
    optimizer.zero_grad()


@pytest.mark.parametrize("name", ["adam", "adamw", "sgd", "rmsprop"])
def test_memory_goes_through_json_and_back(name):
    config = TrainConfig(optimizer=name, momentum=0.9, weight_decay=0.1)
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    optimizer, again = build_optimizer(model, config), build_optimizer(other, config)
    one_step(model, optimizer)
    other.load_state_dict(model.state_dict())
    values, tensors = pack(Memory(optimizer).save())
    Memory(again).load(unpack(json.loads(json.dumps(values)), {k: v.clone() for k, v in tensors.items()}))
    for _ in range(2):
        one_step(model, optimizer)
        one_step(other, again)
    assert torch.equal(model.weight, other.weight)
    assert torch.equal(model.bias, other.bias)


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("adam", lambda p: torch.optim.Adam(p, 0.1)),
        ("adamw", lambda p: torch.optim.AdamW(p, 0.1, weight_decay=0.0)),
        ("sgd", lambda p: torch.optim.SGD(p, 0.1, momentum=0.5)),
        ("rmsprop", lambda p: torch.optim.RMSprop(p, 0.1, momentum=0.5)),
    ],
)
def test_each_is_torchs_of_that_name(name, peer):
    torch.manual_seed(0)
    model, other = nn.Linear(3, 2), nn.Linear(3, 2)
    other.load_state_dict(model.state_dict())
    ours, theirs = (
        build_optimizer(model, TrainConfig(optimizer=name, lr=0.1, momentum=0.5)),
        peer(other.parameters()),
    )
    for _ in range(3):
        one_step(model, ours)
        one_step(other, theirs)
    torch.testing.assert_close(model.weight, other.weight)


def test_decay_pulls_at_matrices_only_and_frozen_weights_are_left_out():
    model = nn.Sequential(nn.Linear(3, 2), nn.Linear(2, 1))
    model[1].weight.requires_grad_(False)
    optimizer = build_optimizer(model, TrainConfig(optimizer="sgd", lr=1.0, weight_decay=0.5))
    matrix, bias, frozen = (p.detach().clone() for p in (model[0].weight, model[0].bias, model[1].weight))
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
    optimizer.step()
    torch.testing.assert_close(model[0].weight.detach(), matrix * 0.5)
    assert torch.equal(model[0].bias, bias)
    assert torch.equal(model[1].weight, frozen)


def test_decay_leaves_the_gains_of_weight_norm_alone():
    blocks = families["tcn"].backbone(4, families["tcn"].Config(layers=1), None)
    optimizer = build_optimizer(blocks, TrainConfig(optimizer="sgd", weight_decay=0.5))
    pulled = {id(p) for p in optimizer.param_groups[0]["params"]}
    assert {name.rpartition(".")[2] for name, p in blocks.named_parameters() if id(p) in pulled} == {"v"}
