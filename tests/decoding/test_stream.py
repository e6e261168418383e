from dataclasses import replace

import pytest
import torch
from toy_stepper import BOS, EOS, ToyStepper

from weft.core.errors import ArtefactError, ConfigError
from weft.core.sequences import Sequences
from weft.decoding import DecodingConfig, decode, stream

ROW = torch.tensor([2])


@pytest.mark.parametrize("method", ["greedy", "sample", "beam"])
@pytest.mark.parametrize("seed", range(4))
def test_a_stream_is_what_decode_returns(method, seed):
    config = DecodingConfig(method=method, beam=1, max_length=9, seed=seed, top_k=4)
    toy, prefix = ToyStepper(seed=seed), Sequences.full(torch.tensor([[4, 1]]))
    [[whole]] = decode(toy, ROW, 1, config, BOS, EOS, prefix=prefix, numbers=[5])
    tokens = list(stream(toy, ROW, config, BOS, EOS, prefix=prefix, number=5))
    assert [4, 1, *tokens] == whole.tokens


def test_tokens_come_before_the_rest_is_made():
    toy = ToyStepper(ending=-50.0)
    tokens = stream(toy, ROW, DecodingConfig(max_length=10**9), BOS, EOS)
    assert [next(tokens) for _ in range(3)]
    assert len(toy.lanes) == 3
    assert torch.is_grad_enabled()


def test_a_beam_does_not_stream():
    config = DecodingConfig(method="beam", max_length=5)
    with pytest.raises(ConfigError, match=r"`decoding.method` must be greedy or sample to stream"):
        next(stream(ToyStepper(), ROW, config, BOS, EOS))


def test_nan_is_refused():
    toy = ToyStepper()
    toy.table.fill_(torch.nan)
    for method in ("greedy", "sample"):
        with pytest.raises(ArtefactError, match="NaN for row 1 at token 1"):
            list(stream(toy, ROW, replace(DecodingConfig(max_length=5), method=method), BOS, EOS))
