"""From a field's arrays to vectors of the model's width; one entry for each kind of field."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from weft.core.registry import Registry
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.data import UNK
from weft.models.config import Common

inputs: Registry[Any] = Registry("kind of input")

Input = Any  # a module: Sequences of a field -> Sequences of width D; `embed` does it for any shape


class TokenInput(nn.Module):
    """Look ids up in a table, times sqrt(D): rows of the table then have norm 1, inputs norm sqrt(D)."""

    def __init__(self, size: int, width: int, dropout: float):
        super().__init__()
        self.table = nn.Parameter(torch.empty(size, width).normal_(std=width**-0.5))
        self.scale = width**0.5
        self.dropout = nn.Dropout(dropout)

    def embed(self, ids: Int[Tensor, "*B"]) -> Float[Tensor, "*B D"]:
        return self.dropout(torch.nn.functional.embedding(ids, self.table) * self.scale)

    def forward(self, x: Sequences) -> Sequences:
        return x.with_data(self.embed(x.data))


class VectorInput(nn.Module):
    """Map C numbers a step to the model's width: W x + b."""

    def __init__(self, channels: int, width: int, dropout: float):
        super().__init__()
        self.linear = nn.Linear(channels, width)
        self.dropout = nn.Dropout(dropout)

    def embed(self, x: Tensor) -> Float[Tensor, "*B D"]:
        """Embed numbers (*B, C) of any type."""
        return self.dropout(self.linear(x.to(self.linear.weight.dtype)))

    def forward(self, x: Sequences) -> Sequences:
        return x.with_data(self.embed(x.data))


class WordInput(nn.Module):
    """Embed words by their id and by their characters: max over a convolution of width 3.

    In training a share `forget` of the words is read as unknown, so that letters learn to tell alone.
    """

    def __init__(
        self, words: int, chars: int, width: int, char_width: int, dropout: float, forget: float = 0.0
    ):
        super().__init__()
        self.forget = forget
        self.words = TokenInput(words, width, 0.0)
        self.chars = nn.Embedding(chars, char_width, padding_idx=0) if chars else None
        if self.chars is not None:
            self.convolution = nn.Conv1d(char_width, 2 * char_width, 3, padding=1)
            self.join = nn.Linear(width + 2 * char_width, width)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Sequences) -> Sequences:
        words = self.words.embed(self._forget(x.data[..., 0]))  # (B, T, D)
        if self.chars is not None:
            words = self.join(torch.cat([words, self._spell(x.data[..., 1:])], dim=-1))
        return x.with_data(self.dropout(words))

    def _forget(self, ids: Int[Tensor, "B T"]) -> Int[Tensor, "B T"]:
        if not self.training or self.forget == 0:
            return ids
        return ids.masked_fill(torch.rand(ids.shape, device=ids.device) < self.forget, UNK)

    def _spell(self, chars: Int[Tensor, "B T W"]) -> Float[Tensor, "B T F"]:
        """Encode each distinct word of the batch once."""
        assert self.chars is not None
        spelled, places = chars.flatten(0, 1).unique(dim=0, return_inverse=True)
        features = torch.relu(self.convolution(self.chars(spelled).mT)).amax(2)  # (words, F)
        return features[places].unflatten(0, chars.shape[:2])


@inputs.register("text")
def _text(field: Any, width: int, common: Common) -> nn.Module:
    return TokenInput(field.size, width, common.input_dropout)


@inputs.register("values")
def _values(field: Any, width: int, common: Common) -> nn.Module:
    return VectorInput(field.width, width, common.input_dropout)


@inputs.register("frames")
def _frames(field: Any, width: int, common: Common) -> nn.Module:
    return VectorInput(field.width, width, common.input_dropout)


@inputs.register("words")
def _words(field: Any, width: int, common: Common) -> nn.Module:
    chars = field.chars.size if field.chars is not None else 0
    forget = common.word_dropout
    return WordInput(field.size, chars, width, common.word_width, common.input_dropout, forget)


def make_input(field: Any, width: int, common: Common) -> Any:
    """Build the input layer for a field."""
    return inputs[field.kind](field, width, common)
