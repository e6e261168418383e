"""One token a word: what stands between white space."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from weft.data.tokenizers.protocol import content, tokenizers
from weft.data.vocabulary import Vocabulary, choose


class WordTokenizer:
    """Words seen often enough in training; any other is UNK. Decoding puts one space between words."""

    kind = "word"

    def __init__(self, vocabulary: Vocabulary):
        self.vocabulary = vocabulary

    @classmethod
    def fit(cls, texts: Iterable[str], size: int | None = None, min_count: int = 1) -> WordTokenizer:
        """Count the words in one pass and keep the most frequent."""
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text.split())
        return cls(choose(counts, size, min_count))

    @property
    def size(self) -> int:
        return self.vocabulary.size

    def encode(self, text: str) -> list[int]:
        return self.vocabulary.ids(text.split())

    def decode(self, ids: Iterable[int]) -> str:
        return " ".join(self.vocabulary.names(content(ids)))

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return self.vocabulary.names(ids)

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind, "words": list(self.vocabulary.words)}


@tokenizers.register("word")
def _from_plain(values: Mapping[str, Any]) -> WordTokenizer:
    return WordTokenizer(Vocabulary(values["words"]))
