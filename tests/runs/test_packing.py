"""Trees go apart and together again."""

import json

import torch

from weft.runs.packing import pack, unpack


def test_a_tree_comes_back_through_json():
    tree = {
        "a": [torch.ones(2), {"b": torch.zeros(1)}, 0.1],
        "c": {"d": None, "e": "text"},
        "f": torch.arange(3),
    }
    values, tensors = pack(tree)
    assert set(tensors) == {"a/0", "a/1/b", "f"}
    back = unpack(json.loads(json.dumps(values)), tensors)
    assert back["a"][1]["b"] is tree["a"][1]["b"]
    assert (back["a"][2], back["c"]) == (0.1, {"d": None, "e": "text"})


def test_a_float_comes_back_to_the_last_bit():
    values, _ = pack({"x": 0.1 + 0.2, "y": 1e-300})
    assert json.loads(json.dumps(values)) == {"x": 0.30000000000000004, "y": 1e-300}
