"""Words and their numbers. Every vocabulary of tokens starts with the same four special ids."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from weft.core.errors import DataError

PAD, UNK, BOS, EOS = 0, 1, 2, 3
SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
LARGEST = 1 << 24  # entries; an embedding of this many rows takes 32 GiB at width 512


class Vocabulary:
    """A list of words, the first of them numbered 4; whatever is not listed is UNK.

    The special names are no words: `<eos>` in a text never ends it, and `<unk>` in a text is UNK.
    """

    def __init__(self, words: Sequence[str]):
        if len(words) > LARGEST:
            raise DataError(
                f"A vocabulary holds at most {LARGEST:,} entries, but this one has {len(words):,}. "
                "Set a smaller vocabulary, or a larger smallest count."
            )
        self.words = tuple(words)
        self._ids = {word: i for i, word in enumerate(self.words, len(SPECIALS))}

    @property
    def size(self) -> int:
        return len(SPECIALS) + len(self.words)

    def ids(self, words: Iterable[str]) -> list[int]:
        """Return the id of each word."""
        find = self._ids.get
        return [find(word, UNK) for word in words]

    def names(self, ids: Iterable[int]) -> list[str]:
        """Return the word of each id; special ids show as `<pad>`, `<unk>`, `<bos>`, `<eos>`."""
        shift = len(SPECIALS)
        return [SPECIALS[i] if i < shift else self.words[i - shift] for i in map(int, ids)]


def choose(counts: Counter[str], size: int | None = None, min_count: int = 1) -> Vocabulary:
    """Keep the words counted at least `min_count` times, the most frequent first, `size` ids at most."""
    counts.pop(SPECIALS[UNK], None)
    often = [word for word, count in counts.items() if count >= min_count]
    kept = sorted(often, key=lambda word: (-counts[word], word))
    return Vocabulary(kept if size is None else kept[: max(size - len(SPECIALS), 0)])
