import json

import pytest

from weft.core.errors import ArtefactError, ConfigError
from weft.data.tokenizers import (
    ByteTokenizer,
    CharTokenizer,
    SubwordTokenizer,
    WordTokenizer,
    tokenizer_from_plain,
    tokenizers,
)

TEXTS = ["ein hund läuft", "ein haus steht"] * 3
ALL = [
    ByteTokenizer(),
    CharTokenizer.fit(TEXTS),
    WordTokenizer.fit(TEXTS),
    SubwordTokenizer.fit(TEXTS, size=280),
    SubwordTokenizer.fit(TEXTS, size=30, form="space"),
]


def test_every_kind_is_here():
    assert {tokenizer.kind for tokenizer in ALL} == set(tokenizers)


@pytest.mark.parametrize("tokenizer", ALL, ids=lambda t: t.kind)
def test_plain_data_rebuilds_it(tokenizer):
    again = tokenizer_from_plain(json.loads(json.dumps(tokenizer.plain())))
    assert again.size == tokenizer.size
    assert again.plain() == tokenizer.plain()
    for text in [*TEXTS, "hund? ja", ""]:
        ids = tokenizer.encode(text)
        assert again.encode(text) == ids
        assert again.decode(ids) == tokenizer.decode(ids)
        assert again.tokens(ids) == tokenizer.tokens(ids)
        assert all(0 <= i < tokenizer.size for i in ids)


@pytest.mark.parametrize("tokenizer", ALL, ids=lambda t: t.kind)
def test_special_ids_do_not_show(tokenizer):
    ids = tokenizer.encode("ein hund")
    assert tokenizer.decode([2, *ids, 3, 0, 0]) == tokenizer.decode(ids) == "ein hund"


def test_an_unknown_kind():
    with pytest.raises(ConfigError, match=r"no kind of tokens `worf`\. Did you mean `word`"):
        tokenizer_from_plain({"kind": "worf"})


def test_a_damaged_one():
    with pytest.raises(ArtefactError, match="names no kind"):
        tokenizer_from_plain({})
