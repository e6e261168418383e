"""Every score kind against an explicit double loop over queries and keys."""

import math

import pytest
import torch

from weft.core.errors import ConfigError
from weft.ops import SCORES, ScoreParams
from weft.ops.scores import check_score, pair_score, project_key, project_query

T, S, DQ, DK, H = 3, 4, 5, 6, 7


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64)


def params(kind: str) -> ScoreParams:
    """Draw the parameters the kind's row of the table names; queries and keys have unequal widths."""
    if kind in ("dot", "scaled_dot", "gaussian"):
        return ScoreParams(w_q=draw(H, DQ), w_k=draw(H, DK))
    if kind == "bilinear":
        return ScoreParams(m=draw(DQ, DK))
    if kind == "additive":
        return ScoreParams(w_q=draw(H, DQ), w_k=draw(H, DK), w=draw(H))
    return ScoreParams(w_qk=draw(H, DQ + DK), w=draw(H)) if kind == "concat" else ScoreParams()


def one_score(kind: str, q: torch.Tensor, k: torch.Tensor, p: ScoreParams) -> float:
    """Return the score of one query and one key, as the equation stands."""
    if kind == "identity":
        return float(sum(a * b for a, b in zip(q, k, strict=True)))
    if kind == "bilinear":
        return float(sum(q[i] * p.m[i, j] * k[j] for i in range(DQ) for j in range(DK)))
    if kind == "concat":
        z = p.w_qk @ torch.cat([q, k])
        return float(sum(w * math.tanh(value) for w, value in zip(p.w, z, strict=True)))
    a, b = p.w_q @ q, p.w_k @ k
    pairs = list(zip(a.tolist(), b.tolist(), strict=True))
    if kind == "gaussian":
        return -sum((x - y) ** 2 for x, y in pairs) / 2
    if kind == "additive":
        return sum(w * math.tanh(x + y) for w, (x, y) in zip(p.w.tolist(), pairs, strict=True))
    return sum(x * y for x, y in pairs) / (math.sqrt(H) if kind == "scaled_dot" else 1)


@pytest.mark.parametrize("kind", SCORES)
def test_a_score_is_its_equation_for_every_pair(kind):
    q, k, p = draw(2, T, DQ), draw(2, S, DQ if kind == "identity" else DK), params(kind)
    got = SCORES[kind](q, k, p)
    assert got.shape == (2, T, S)
    want = [[[one_score(kind, q[b, t], k[b, s], p) for s in range(S)] for t in range(T)] for b in range(2)]
    assert torch.allclose(got, torch.tensor(want, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize("kind", SCORES)
def test_projected_once_gives_the_same_scores(kind):
    q, k, p = draw(2, T, DQ), draw(2, S, DQ if kind == "identity" else DK), params(kind)
    got = pair_score(project_query(q, kind, p), project_key(k, kind, p), kind, p.w)
    assert torch.allclose(got, SCORES[kind](q, k, p), atol=1e-12)


def test_concat_is_additive_when_the_matrices_stand_side_by_side():
    q, k, p = draw(2, T, DQ), draw(2, S, DK), params("additive")
    joined = ScoreParams(w_qk=torch.cat([p.w_q, p.w_k], dim=1), w=p.w)
    assert torch.allclose(SCORES["concat"](q, k, joined), SCORES["additive"](q, k, p), atol=1e-12)


@pytest.mark.parametrize("kind", ["identity", "dot", "scaled_dot", "gaussian", "bilinear", "additive"])
def test_a_parameter_left_out_is_the_identity(kind):
    q, k, w = draw(1, T, H), draw(1, S, H), draw(H)
    eye = torch.eye(H, dtype=torch.float64)
    given = ScoreParams(eye, eye, w, eye)
    assert torch.allclose(SCORES[kind](q, k, ScoreParams(w=w)), SCORES[kind](q, k, given), atol=1e-12)


@pytest.mark.parametrize("kind", SCORES)
def test_heads_and_other_leading_axes(kind):
    q, k, p = draw(2, 3, T, DQ), draw(2, 3, S, DQ if kind == "identity" else DK), params(kind)
    got = SCORES[kind](q, k, p)
    assert got.shape == (2, 3, T, S)
    assert torch.allclose(got[1, 2], SCORES[kind](q[1, 2], k[1, 2], p), atol=1e-12)


def test_a_score_that_does_not_exist_is_refused():
    with pytest.raises(
        ConfigError, match=r"There is no attention score `aditive`. Did you mean `additive`\?"
    ):
        check_score("aditive")
