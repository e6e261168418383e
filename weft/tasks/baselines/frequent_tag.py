"""Tagging without context: each word's most frequent tag in training."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from weft.data.fit import most_frequent


def frequent_tags(
    train: Iterable[tuple[Sequence[str], Sequence[str]]], test: Iterable[Sequence[str]]
) -> list[list[str]]:
    """Tell each word's most frequent tag; an unseen word gets the most frequent of words seen once."""
    by_word: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for words, tags in train:
        for word, tag in zip(words, tags, strict=True):
            by_word[word][tag] += 1
    table = {word: most_frequent(tags) for word, tags in by_word.items()}
    rare = [word for word in table if by_word[word].total() == 1] or list(table)
    new = most_frequent(Counter(table[word] for word in rare))
    return [[table.get(word, new) for word in words] for words in test]
