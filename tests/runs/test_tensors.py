"""Our writer against the library's reader, and what must survive a file."""

import pytest
import safetensors.torch
import torch
from torch import nn

from weft.core.errors import ArtefactError
from weft.runs.storage import digest_file
from weft.runs.tensors import read_tensors, write_tensors


@pytest.mark.parametrize(
    "dtype",
    [
        torch.float64,
        torch.float32,
        torch.float16,
        torch.bfloat16,
        torch.int64,
        torch.int32,
        torch.uint8,
        torch.bool,
    ],
)
def test_the_library_reads_what_we_write(tmp_path, dtype):
    tensors = {
        "matrix": (torch.arange(6) % 2).reshape(2, 3).to(dtype),
        "turned": (torch.arange(6) % 2).reshape(2, 3).to(dtype).t(),
        "scalar": torch.ones((), dtype=dtype),
        "nothing": torch.zeros(0, 3, dtype=dtype),
        "byte": torch.ones(3, dtype=torch.uint8),
    }
    path = tmp_path / "x.safetensors"
    digest = write_tensors(path, tensors)
    assert digest == digest_file(path)
    for read in (safetensors.torch.load_file(path), read_tensors(path)):
        assert read.keys() == tensors.keys()
        assert all(torch.equal(read[name], tensors[name]) for name in tensors)
        assert all(read[name].dtype == tensors[name].dtype for name in tensors)


def test_tied_weights_are_written_once_and_come_back_tied(tmp_path):
    model = nn.Sequential(nn.Linear(50, 50, bias=False), nn.Linear(50, 50, bias=False))
    model[1].weight = model[0].weight
    path = tmp_path / "x.safetensors"
    digest = write_tensors(path, model.state_dict())
    assert digest.size < 50 * 50 * 4 + 300
    read = read_tensors(path)
    assert read["1.weight"] is read["0.weight"]
    model.load_state_dict(read)


def test_views_of_one_storage_are_kept_apart(tmp_path):
    whole = torch.arange(6.0)
    write_tensors(tmp_path / "x", {"head": whole[:3], "tail": whole[3:], "all": whole})
    read = read_tensors(tmp_path / "x")
    assert torch.equal(read["tail"], whole[3:])
    assert torch.equal(read["all"], whole)


def test_the_same_tensors_give_the_same_bytes(tmp_path):
    tensors = {"b": torch.ones(2), "a": torch.zeros(3, dtype=torch.int64)}
    assert write_tensors(tmp_path / "1", tensors) == write_tensors(tmp_path / "2", tensors)


def test_what_is_no_such_file_is_refused_in_one_line(tmp_path):
    (tmp_path / "x").write_bytes(b"not tensors")
    with pytest.raises(ArtefactError, match="is no readable safetensors file"):
        read_tensors(tmp_path / "x")
