"""Byte-pair encoding: frequent words whole, rare words in pieces. Spaces survive exactly.

form `byte`: pieces are made of the 256 bytes, so nothing is unknown and every text decodes to itself.
form `space`: pieces are made of characters, a space written `▁`; an unseen character is UNK.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer as Engine
from tokenizers import models, pre_tokenizers, trainers

from weft.core.errors import ConfigError
from weft.data.tokenizers.protocol import content, tokenizers
from weft.data.vocabulary import SPECIALS, UNK

SHIFT = len(SPECIALS)
SPACE = "▁"
UNKNOWN = "\0"  # the engine's own name for UNK in form `space`; readers refuse NUL in text


class SubwordTokenizer:
    """Pieces and the merges that make them. The engine's ids follow the four special ones.

    A space is put before every text, so that a word at its start is cut like one inside.
    """

    kind = "subword"

    def __init__(self, form: str, pieces: Sequence[str], merges: Sequence[Sequence[str]]):
        self.form, self.pieces = form, tuple(pieces)
        self.merges = tuple((left, right) for left, right in merges)
        self._engine = _engine(form, self.pieces, self.merges)
        self._unknown = 0 if form == "space" else -1

    @classmethod
    def fit(
        cls, texts: Iterable[str], size: int = 8000, form: str = "byte", min_count: int = 2
    ) -> SubwordTokenizer:
        """Learn the merges in one pass; `size` counts the four special ids."""
        least = SHIFT + (256 if form == "byte" else 1)
        if size <= least:
            rule = f"A subword vocabulary needs more than {least} entries"
            raise ConfigError(f"{rule}, but `vocabulary` is {size}. Try 8000.")
        engine = _engine(form, None, ())
        engine.train_from_iterator(_prefixed(texts, form), _trainer(form, size - SHIFT, min_count))
        model = json.loads(engine.to_str())["model"]
        pieces = sorted(model["vocab"], key=model["vocab"].__getitem__)
        return cls(form, pieces, model["merges"])

    @property
    def size(self) -> int:
        return SHIFT + len(self.pieces)

    def encode(self, text: str) -> list[int]:
        if not text:
            return []
        ids = self._engine.encode(_prefix(text, self.form), add_special_tokens=False).ids
        return [UNK if i == self._unknown else i + SHIFT for i in ids]

    def decode(self, ids: Iterable[int]) -> str:
        kept = content(ids)
        if self.form == "space":
            pieces = ["\N{REPLACEMENT CHARACTER}" if i == UNK else self.pieces[i - SHIFT] for i in kept]
            text = "".join(pieces).replace(SPACE, " ")
        else:
            text = _bytes(self.pieces[i - SHIFT] for i in kept if i != UNK).decode("utf-8", "replace")
        return text.removeprefix(" ")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[i] if i < SHIFT else self._show(self.pieces[i - SHIFT]) for i in map(int, ids)]

    def plain(self) -> dict[str, Any]:
        merges = [list(pair) for pair in self.merges]
        return {"kind": self.kind, "form": self.form, "pieces": list(self.pieces), "merges": merges}

    def _show(self, piece: str) -> str:
        text = piece if self.form == "space" else _bytes([piece]).decode("utf-8", "replace")
        return text.replace(" ", SPACE)


@tokenizers.register("subword")
def _from_plain(values: Mapping[str, Any]) -> SubwordTokenizer:
    return SubwordTokenizer(values["form"], values["pieces"], values["merges"])


def _engine(form: str, pieces: Sequence[str] | None, merges: Sequence[tuple[str, str]]) -> Engine:
    if form not in ("byte", "space"):
        raise ConfigError(f"The form of subwords is `byte` or `space`, but is `{form}`.")
    vocabulary = {} if pieces is None else {piece: i for i, piece in enumerate(pieces)}
    unknown = UNKNOWN if form == "space" else None
    engine = Engine(models.BPE(vocab=vocabulary, merges=list(merges), unk_token=unknown))
    if form == "byte":
        engine.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=True)
    else:
        spaces = pre_tokenizers.Metaspace(replacement=SPACE, prepend_scheme="never")
        engine.pre_tokenizer = pre_tokenizers.Sequence([spaces, pre_tokenizers.Punctuation()])
    return engine


def _trainer(form: str, size: int, min_count: int) -> trainers.BpeTrainer:
    byte = form == "byte"
    return trainers.BpeTrainer(
        vocab_size=size,
        min_frequency=min_count,
        show_progress=False,
        special_tokens=[] if byte else [UNKNOWN],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet() if byte else [],
        limit_alphabet=max(size // 2, 256),
    )


def _prefixed(texts: Iterable[str], form: str) -> Iterator[str]:
    for text in texts:
        yield _prefix(text, form)


def _prefix(text: str, form: str) -> str:
    """Put a space in front; a `▁` of the text's own is unknown in form `space`, lest it become a space."""
    text = text.encode("utf-8", "replace").decode()  # a lone surrogate becomes `?`
    return " " + (text.replace(SPACE, UNKNOWN) if form == "space" else text)


def _byte_names() -> dict[str, int]:
    """Return the character by which byte-level pieces write each byte (GPT-2's table)."""
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in printable]
    return {chr(b): b for b in printable} | {chr(0x100 + i): b for i, b in enumerate(others)}


_BYTES = _byte_names()


def _bytes(pieces: Iterable[str]) -> bytes:
    return bytes(_BYTES[character] for piece in pieces for character in piece)
