"""The cache by hand, by its definition, and cut anywhere."""

import math

import pytest
import torch

from weft.tasks.text_cache import TextCache

V = 4


def by_definition(cache: TextCache, p, y, wanted):
    """Return p(w) of the module's equations, one step at a time."""
    y = torch.nn.functional.normalize(y, dim=1)
    rows = []
    for t in range(len(y)):
        past = range(max(0, t - cache.size), t)
        weights = [math.exp(cache.sharpness * float(y[t] @ y[i])) for i in past]
        told = torch.zeros(V, dtype=p.dtype)
        for weight, i in zip(weights, past, strict=True):
            told[wanted[i]] += weight / sum(weights)
        rows.append((1 - cache.share) * p[t] + cache.share * told if weights else p[t])
    return torch.stack(rows)


@pytest.fixture
def text():
    torch.manual_seed(0)
    p = torch.randn(2, 9, V, dtype=torch.float64).softmax(2)
    return p, torch.randn(2, 9, 3, dtype=torch.float64), torch.randint(0, V, (2, 9))


@pytest.mark.parametrize("size", [1, 3, 50])
@pytest.mark.parametrize("cut", [1, 4, 9])
def test_it_is_its_definition_wherever_the_text_is_cut(size, cut, text):
    cache, (p, y, wanted) = TextCache(size, 0.3, 2.0), text
    past, parts = None, []
    for start in range(0, 9, cut):
        piece = slice(start, start + cut)
        log_p, past = cache.mix(p[:, piece].log(), y[:, piece], wanted[:, piece], past)
        parts.append(log_p.exp())
    found = torch.cat(parts, 1)
    for row in range(2):
        expected = by_definition(cache, p[row], y[row], wanted[row])
        assert torch.allclose(found[row], expected, atol=1e-6)


def test_it_never_sees_what_it_is_to_tell(text):
    cache, (p, y, wanted) = TextCache(50, 0.5, 2.0), text
    before, _ = cache.mix(p.log(), y, wanted, None)
    other = wanted.clone()
    other[:, 5:] = (wanted[:, 5:] + 1) % V
    after, _ = cache.mix(p.log(), y, other, None)
    assert torch.equal(before[:, :6], after[:, :6])
    assert not torch.equal(before[:, 6:], after[:, 6:])


def test_all_shares_make_one(text):
    cache, (p, y, wanted) = TextCache(4, 0.9, 30.0), text
    assert torch.allclose(cache.mix(p.log(), y, wanted, None)[0].exp().sum(2), torch.ones(2, 9).double())
