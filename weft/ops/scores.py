"""Score functions a(q, k) of attention, one interface: (..., T, .) x (..., S, .) -> (..., T, S).

| name       | score                                | parameters          |
|------------|--------------------------------------|---------------------|
| identity   | q . k on raw states                  | none                |
| dot        | (W_q q) . (W_k k)                    | w_q, w_k            |
| scaled_dot | (W_q q) . (W_k k) / sqrt(d)          | w_q, w_k            |
| gaussian   | -||W_q q - W_k k||^2 / 2             | w_q, w_k            |
| bilinear   | q^T M k                              | m                   |
| additive   | w^T tanh(W_q q + W_k k)              | w_q, w_k, w         |
| concat     | v^T tanh(W [q; k])                   | w_qk, w             |

A parameter left None is the identity (dot, scaled_dot and gaussian on raw states).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from weft.core.errors import ConfigError, InputError, nearest
from weft.core.shapes import Float, Tensor


class ScoreParams(NamedTuple):
    """Parameters of a score function; each kind uses those the table names."""

    w_q: Tensor | None = None  # (H, Dq)
    w_k: Tensor | None = None  # (H, Dk)
    w: Tensor | None = None  # (H,)
    m: Tensor | None = None  # (Dq, Dk)
    w_qk: Tensor | None = None  # (H, Dq + Dk)


def _linear(x: Tensor, weight: Tensor | None) -> Tensor:
    return x if weight is None else torch.nn.functional.linear(x, weight)


def dot(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return (W_q q) . (W_k k)."""
    return _linear(q, p.w_q) @ _linear(k, p.w_k).mT


def scaled_dot(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return (W_q q) . (W_k k) / sqrt(d)."""
    q = _linear(q, p.w_q)
    return q @ _linear(k, p.w_k).mT / q.shape[-1] ** 0.5


def gaussian(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return -||W_q q - W_k k||^2 / 2."""
    q, k = _linear(q, p.w_q), _linear(k, p.w_k)
    return -0.5 * (q.unsqueeze(-2) - k.unsqueeze(-3)).square().sum(-1)


def bilinear(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return q^T M k."""
    return (q if p.m is None else q @ p.m) @ k.mT


def additive(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return w^T tanh(W_q q + W_k k)."""
    assert p.w is not None, "the additive score needs its vector w"
    return torch.tanh(_linear(q, p.w_q).unsqueeze(-2) + _linear(k, p.w_k).unsqueeze(-3)) @ p.w


def concat(q: Tensor, k: Tensor, p: ScoreParams) -> Tensor:
    """Return v^T tanh(W [q; k]), the pairs written out."""
    assert p.w is not None, "the concatenated score needs its v"
    shape = (*torch.broadcast_shapes(q.shape[:-2], k.shape[:-2]), q.shape[-2], k.shape[-2])
    pairs = torch.cat(
        [q.unsqueeze(-2).expand(*shape, q.shape[-1]), k.unsqueeze(-3).expand(*shape, k.shape[-1])], dim=-1
    )
    return torch.tanh(_linear(pairs, _both(p))) @ p.w


SCORES: dict[str, Callable[[Tensor, Tensor, ScoreParams], Tensor]] = {
    "identity": dot,
    "dot": dot,
    "scaled_dot": scaled_dot,
    "gaussian": gaussian,
    "bilinear": bilinear,
    "additive": additive,
    "concat": concat,
}


def project_query(q: Float[Tensor, "*B T Dq"], score: str, p: ScoreParams) -> Float[Tensor, "*B T H"]:
    """Return the query's share of the work, done once for all its pairs.

    With `project_key` done too, `pair_score` needs no matrix: dots are dots of the results, and
    additive and concat are w . tanh(q' + k'), because W [q; k] = W_1 q + W_2 k.
    """
    if score == "bilinear":
        return q if p.m is None else q @ p.m
    if score == "concat":
        return _linear(q, _both(p)[:, : q.shape[-1]])
    return _linear(q, p.w_q)


def project_key(k: Float[Tensor, "*B S Dk"], score: str, p: ScoreParams) -> Float[Tensor, "*B S H"]:
    """Return the key's share of the work, done once for all its pairs."""
    if score == "bilinear":
        return k
    if score == "concat":
        return _linear(k, _both(p)[:, -k.shape[-1] :])
    return _linear(k, p.w_k)


def _both(p: ScoreParams) -> Tensor:
    assert p.w_qk is not None, "the concatenated score needs its W"
    return p.w_qk


def pair_score(
    q: Float[Tensor, "*B T H"], k: Float[Tensor, "*B S H"], score: str, w: Tensor | None
) -> Float[Tensor, "*B T S"]:
    """Return the scores of projected queries and keys."""
    if score in ("additive", "concat"):
        return additive(q, k, ScoreParams(w=w))
    return SCORES["dot" if score == "bilinear" else score](q, k, ScoreParams())


def check_score(score: str) -> None:
    """Refuse a score that does not exist."""
    if score not in SCORES:
        raise ConfigError(f"There is no attention score `{score}`.{nearest(score, SCORES)}")


def check_params(score: str, p: ScoreParams) -> None:
    """Refuse parameters that lack what the score cannot do without."""
    for name in {"additive": ("w",), "concat": ("w", "w_qk")}.get(score, ()):
        if getattr(p, name) is None:
            raise InputError(
                f"The score `{score}` needs `{name}`, but has none. Try ScoreParams({name}=...)."
            )
