"""A Stepper small enough to enumerate, and the plain searches its results are held against."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

BOS, EOS = 2, 3
CODES = 997


class ToyState(NamedTuple):
    code: Tensor  # (lanes,): a number that stands for everything a lane has said
    memory: Tensor  # (source rows,): lane b reads source row b // (lanes // source rows)


class ToyStepper:
    """p(y | history, source) from a random table; refuses selections that break the protocol."""

    def __init__(self, vocabulary: int = 5, seed: int = 0, ties: bool = False, ending: float = 0.0):
        chance = torch.Generator().manual_seed(seed)
        logits = 1.5 * torch.randn(8, CODES, vocabulary, generator=chance)
        logits[..., EOS] += ending
        self.table = (logits.round() if ties else logits).log_softmax(-1)
        self.vocabulary = vocabulary
        self.lanes: list[int] = []  # how many lanes each step had

    def start(self, source: Tensor) -> ToyState:
        return ToyState(torch.zeros_like(source), source)

    def step(self, tokens: Tensor, state: ToyState) -> tuple[Tensor, ToyState]:
        self.lanes.append(len(tokens))
        code = (state.code * 31 + tokens + 7) % CODES
        memory = state.memory.repeat_interleave(len(tokens) // len(state.memory))
        return self.table[memory, code], state._replace(code=code)

    def select(self, state: ToyState, rows: Tensor) -> ToyState:
        blocks, sizes = torch.unique_consecutive(
            rows // (len(state.code) // len(state.memory)), return_counts=True
        )
        assert len(set(sizes.tolist())) == 1, "blocks of different sizes"
        assert len(set(blocks.tolist())) == len(blocks), "a source row in two blocks"
        return ToyState(state.code[rows], state.memory[blocks])

    def log_prob(self, source: int, tokens: list[int]) -> float:
        """Return log p(tokens) step by step, without tensors of lanes."""
        code, total = 0, 0.0
        for given, token in zip([BOS, *tokens], tokens, strict=False):
            code = (code * 31 + given + 7) % CODES
            total += float(self.table[source, code, token])
        return total


def penalty(length: int, alpha: float) -> float:
    return ((5 + length) / 6) ** alpha


def repeats(tokens: list[int], size: int) -> bool:
    """Tell whether a run of `size` tokens comes twice."""
    runs = [tuple(tokens[i : i + size]) for i in range(len(tokens) - size + 1)]
    return size > 0 and len(set(runs)) < len(runs)


def outputs(vocabulary: int, least: int, most: int) -> Iterator[list[int]]:
    """Yield every output of least to most tokens."""
    words = [token for token in range(vocabulary) if token != EOS]
    for length in range(least, most + 1):
        yield from map(list, itertools.product(words, repeat=length))


def brute_force(
    toy: ToyStepper, source: int, most: int, *, least: int = 0, alpha: float = 0.0, ngram: int = 0
) -> list[tuple[float, list[int]]]:
    """Return every finished output with its score, best first."""
    scored = [
        (toy.log_prob(source, [*tokens, EOS]) / penalty(len(tokens), alpha), tokens)
        for tokens in outputs(toy.vocabulary, least, most)
        if not repeats(tokens, ngram)
    ]
    return sorted(scored, key=lambda pair: (-pair[0], pair[1]))


def plain_beam(
    toy: ToyStepper, source: int, most: int, width: int, nbest: int, alpha: float
) -> list[tuple[float, list[int], bool]]:
    """Search one row with lists, a dictionary of nothing, and no early stop."""
    lanes: list[list[int]] = [[]]
    finished: list[tuple[float, list[int], bool]] = []
    for step in range(most + 1):
        grown = [[*lane, token] for lane in lanes for token in range(toy.vocabulary)]
        ranked = sorted(grown, key=lambda tokens: -toy.log_prob(source, tokens))
        ending = [tokens[:-1] for tokens in ranked[:width] if tokens[-1] == EOS]
        finished += [(toy.log_prob(source, [*t, EOS]) / penalty(step, alpha), t, True) for t in ending]
        rest = [(toy.log_prob(source, t) / penalty(step, alpha), t, False) for t in lanes if t not in ending]
        lanes = [tokens for tokens in ranked[: 2 * width] if tokens[-1] != EOS][:width]
    finished.sort(key=lambda entry: -entry[0])
    return (finished + sorted(rest, key=lambda entry: -entry[0]))[:nbest]


def plain_greedy(toy: ToyStepper, source: int, most: int) -> tuple[list[int], bool]:
    """Take the most likely token until eos or the limit."""
    tokens: list[int] = []
    while True:
        token = max(range(toy.vocabulary), key=lambda t: toy.log_prob(source, [*tokens, t]))
        if token == EOS:
            return tokens, True
        if len(tokens) == most:
            return tokens, False
        tokens.append(token)
