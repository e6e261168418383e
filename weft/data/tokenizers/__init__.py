"""From text to token ids and back, one file a kind: characters, bytes, words, subwords."""

from weft.data.tokenizers.bytes import ByteTokenizer
from weft.data.tokenizers.chars import CharTokenizer
from weft.data.tokenizers.protocol import Tokenizer, tokenizer_from_plain, tokenizers
from weft.data.tokenizers.subwords import SubwordTokenizer
from weft.data.tokenizers.words import WordTokenizer

__all__ = [
    "ByteTokenizer",
    "CharTokenizer",
    "SubwordTokenizer",
    "Tokenizer",
    "WordTokenizer",
    "tokenizer_from_plain",
    "tokenizers",
]
