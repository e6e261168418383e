"""One token a character (a Unicode code point)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from weft.data.tokenizers.protocol import content, tokenizers
from weft.data.vocabulary import UNK, Vocabulary, choose

REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


class CharTokenizer:
    """Characters seen in training; any other is UNK and decodes to U+FFFD."""

    kind = "char"

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def fit(cls, texts: Iterable[str], size: int | None = None, min_count: int = 1) -> CharTokenizer:
        """Learn the characters in one pass."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text)
        return cls(choose(counts, size, min_count))

    @property
    def size(self) -> int:
        return self.vocabulary.size

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(text)

    def decode(self, ids: Iterable[int]) -> str:
        return "".join(REPLACEMENT if i == UNK else self.vocabulary.names([i])[0] for i in content(ids))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return self.vocabulary.names(ids)

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "characters": list(self.vocabulary.words)}


@tokenizers.register("char")
def _from_plain(values: Mapping[str, Any]) -> CharTokenizer:
    return CharTokenizer(Vocabulary(values["characters"]))
