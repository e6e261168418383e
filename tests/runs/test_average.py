"""The mean of checkpoints."""

import pytest
import torch

from weft.core.errors import ArtefactError, ConfigError
from weft.runs import RunFolder, average


@pytest.fixture
def made(tmp_path):
    folder = RunFolder.create(tmp_path / "run")
    folder.write_config({})
    checkpoints = []
    for step, value in ((1, 1.0), (2, 2.0), (3, 6.0)):
        tied = torch.full((2,), value)
        weights = {"a": tied, "b": tied, "n": torch.tensor(step), "half": torch.full((1,), value).bfloat16()}
        checkpoints.append(folder.save(step, weights, {}))
    return checkpoints


def test_it_is_the_mean_and_tied_weights_stay_tied(made):
    mean = average(made)
    assert mean["a"].tolist() == [3.0, 3.0]
    assert mean["b"] is mean["a"]
    assert list(mean) == ["a", "b", "n", "half"] or set(mean) == {"a", "b", "n", "half"}
    assert (mean["half"].dtype, mean["half"].item()) == (torch.bfloat16, 3.0)
    assert mean["n"].item() == 3
    assert average(made[:1])["a"].tolist() == [1.0, 1.0]


def test_a_damaged_one_is_refused_and_so_is_none(made):
    (made[1].path / "model.safetensors").write_bytes(b"")
    with pytest.raises(ArtefactError, match=r"model\.safetensors is damaged"):
        average(made)
    with pytest.raises(ConfigError, match="at least 1 checkpoint, but there are 0"):
        average([])
