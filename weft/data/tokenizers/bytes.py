"""One token a byte of the UTF-8 text: 256 of them, nothing to learn, nothing unknown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.data.tokenizers.protocol import content, tokenizers
from weft.data.vocabulary import SPECIALS, UNK

SHIFT = len(SPECIALS)


class ByteTokenizer:
    """Byte b has id b + 4. Bytes that are no UTF-8 decode to U+FFFD."""

    kind = "byte"
    size = SHIFT + 256

    def encode(self, text: str) -> list[int]:
        return [byte + SHIFT for byte in text.encode("utf-8", "replace")]

    def decode(self, ids: Iterable[int]) -> str:
        return bytes(i - SHIFT for i in content(ids) if i != UNK).decode("utf-8", "replace")

    def tokens(self, ids: Iterable[int]) -> list[str]:
        return [SPECIALS[i] if i < SHIFT else _show(i - SHIFT) for i in map(int, ids)]

    def plain(self) -> dict[str, Any]:
        return {"kind": self.kind}


def _show(byte: int) -> str:
    """Write a printable byte as its character, any other as `<0x0A>`."""
    return chr(byte) if 0x20 <= byte < 0x7F else f"<0x{byte:02X}>"


@tokenizers.register("byte")
def _from_plain(values: Mapping[str, Any]) -> ByteTokenizer:
    del values  # nothing was learned
    return ByteTokenizer()
