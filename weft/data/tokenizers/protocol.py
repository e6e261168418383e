"""What every tokenizer can do, and the table of their kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from weft.core.errors import ArtefactError
from weft.core.registry import Registry
from weft.data.vocabulary import BOS, EOS, PAD


class Tokenizer(Protocol):
    """Cuts text into tokens. Ids 0 to 3 are PAD, UNK, BOS, EOS; no text encodes to PAD, BOS or EOS."""

    @property
    def kind(self) -> str: ...

    @property
    def size(self) -> int: ...

    def encode(self, text: str) -> list[int]: ...

    def decode(self, ids: Iterable[int]) -> str: ...

    def tokens(self, ids: Iterable[int]) -> list[str]: ...

    def plain(self) -> dict[str, Any]: ...


tokenizers: Registry[Callable[[Mapping[str, Any]], Tokenizer]] = Registry("kind of tokens")


def tokenizer_from_plain(values: Mapping[str, Any]) -> Tokenizer:
    """Rebuild a tokenizer from what its `plain()` gave."""
    if not isinstance(values, Mapping) or "kind" not in values:
        raise ArtefactError("The stored tokenizer names no kind. Restore its file from a copy.")
    return tokenizers[values["kind"]](values)


def content(ids: Iterable[int]) -> list[int]:
    """Leave out PAD, BOS and EOS."""
    return [i for i in map(int, ids) if i not in (PAD, BOS, EOS)]
