import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ConfigError
from weft.data.tokenizers import SubwordTokenizer
from weft.data.vocabulary import BOS, EOS, UNK

TEXTS = ["low lower lowest", "new newer newest", "wide  wider widest."] * 5
BYTE = SubwordTokenizer.fit(TEXTS, size=300, form="byte")
SPACE = SubwordTokenizer.fit(TEXTS, size=40, form="space")


def test_the_first_merges_are_the_most_frequent_pairs():
    # by hand: "we" stands 25 times, five in each word; then "lo", "ow" 15 times, "er" 15, "ne", "ew" 10
    texts = ["lower lowest newer newest lower"] * 5
    bpe = SubwordTokenizer.fit(texts, size=4 + 1 + 9 + 1, form="space")  # special, unknown, letters, a merge
    assert bpe.merges == (("w", "e"),)


def test_frequent_words_are_one_piece():
    assert SPACE.tokens(SPACE.encode("low new")) == ["▁low", "▁new"]
    assert BYTE.tokens(BYTE.encode("low new")) == ["▁low", "▁new"]


@pytest.mark.parametrize("bpe", [BYTE, SPACE], ids=["byte", "space"])
@pytest.mark.parametrize("text", ["", " ", "low", " low", "low ", "low  lower", "  wide  "])
def test_spaces_survive(bpe, text):
    assert bpe.decode(bpe.encode(text)) == text


@given(st.text())
def test_bytes_lose_nothing(text):
    assert BYTE.decode(BYTE.encode(text)) == text.encode("utf-8", "replace").decode()


@pytest.mark.parametrize("bpe", [BYTE, SPACE], ids=["byte", "space"])
def test_names_of_special_ids_are_plain_text(bpe):
    ids = bpe.encode("<eos> <pad> <bos>")
    assert not {0, BOS, EOS} & set(ids)


def test_unseen_characters():
    ids = SPACE.encode("lowλ▁")
    assert ids[-2:] == [UNK, UNK]
    assert SPACE.decode(ids) == "low" + "\N{REPLACEMENT CHARACTER}" * 2


def test_empty_text_has_no_tokens():
    assert BYTE.encode("") == SPACE.encode("") == []


def test_training_twice_gives_the_same():
    assert SubwordTokenizer.fit(iter(TEXTS), size=300).plain() == BYTE.plain()


def test_too_small_a_vocabulary():
    with pytest.raises(ConfigError, match=r"needs more than 260 entries, but `vocabulary` is 100. Try 8000."):
        SubwordTokenizer.fit(TEXTS, size=100)


def test_an_unknown_form():
    with pytest.raises(ConfigError, match="`byte` or `space`, but is `word`"):
        SubwordTokenizer.fit(TEXTS, form="word")
