from weft.data.tokenizers import WordTokenizer
from weft.data.vocabulary import UNK


def test_words_by_frequency():
    words = WordTokenizer.fit(["the cat", "the  dog the", "<unk> dog"], size=6)
    assert words.size == 6
    assert words.encode("the dog <unk> cat") == [4, 5, UNK, UNK]
    assert words.decode(words.encode("dog the cat")) == "dog the <unk>"


def test_rare_words_are_unknown():
    words = WordTokenizer.fit(["a a b"], min_count=2)
    assert words.encode("a b") == [4, UNK]
