from weft.data.tokenizers import CharTokenizer
from weft.data.vocabulary import BOS, EOS, UNK


def test_characters_by_frequency():
    chars = CharTokenizer.fit(["abb", "b c"])
    assert chars.encode("ba c") == [4, 6, 5, 7]  # b three times; then space, a, c by code point
    assert chars.size == 8


def test_unseen_characters():
    chars = CharTokenizer.fit(["ab"])
    ids = chars.encode("axb")
    assert ids == [4, UNK, 5]
    assert chars.decode([BOS, *ids, EOS]) == "a\N{REPLACEMENT CHARACTER}b"
    assert chars.tokens([BOS, *ids]) == ["<bos>", "a", "<unk>", "b"]


def test_line_separators_are_characters():
    text = "a\u2028b\u0085\U0001f600"
    chars = CharTokenizer.fit([text])
    assert chars.decode(chars.encode(text)) == text
