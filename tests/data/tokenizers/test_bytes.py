from hypothesis import given
from hypothesis import strategies as st

from weft.data.tokenizers import ByteTokenizer

BYTES = ByteTokenizer()


def test_byte_b_is_b_plus_four():
    assert BYTES.size == 260
    assert BYTES.encode("Aé") == [0x41 + 4, 0xC3 + 4, 0xA9 + 4]
    assert BYTES.tokens(BYTES.encode("A\n")) == ["A", "<0x0A>"]


def test_half_a_character_shows_as_such():
    assert BYTES.decode([0xC3 + 4, 0x41 + 4]) == "\N{REPLACEMENT CHARACTER}A"


@given(st.text())
def test_every_text_comes_back(text):
    assert BYTES.decode(BYTES.encode(text)) == text.encode("utf-8", "replace").decode()
