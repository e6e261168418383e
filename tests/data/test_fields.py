import json

import numpy as np
import pytest

from weft.core.errors import ArtefactError, DataError
from weft.data.fields import (
    UNK,
    FramesField,
    LabelField,
    LabelsField,
    TextField,
    ValueField,
    VectorsField,
    WordsField,
    field_from_plain,
    kinds,
)
from weft.data.tokenizers import CharTokenizer
from weft.data.vocabulary import Vocabulary

TEXT = TextField(CharTokenizer.fit(["abc"]))
WORDS = WordsField(Vocabulary(["the", "cat"]))
CHARS = WordsField(Vocabulary(["the", "cat"]), Vocabulary(list("abcdefgh")), max_chars=4)
LABEL, MULTI = LabelField(["neg", "pos"], frequent="pos"), LabelField(["a", "b", "c"], multi=True)
LABELS, VALUE = LabelsField(["N", "V"], "N"), ValueField(mean=10.0, std=4.0)
VECTORS = VectorsField(2, mean=[1.0, 2.0], std=[2.0, 0.0])
HOLES = VectorsField(2, mean=[1.0, 2.0], std=[2.0, 1.0], missing=True)
EXAMPLES = [
    (TEXT, "cab"),
    (WORDS, ["the", "cat"]),
    (CHARS, ["cat", "the"]),
    (LABEL, "pos"),
    (MULTI, ["a", "c"]),
    (LABELS, ["V", "N", "V"]),
    (VALUE, 12.0),
    (VECTORS, np.array([[1.0, 2.0], [3.0, 2.0]])),
    (HOLES, np.array([[1.0, 2.0]])),
    (FramesField(3), np.array([[0, 1, 1]], np.uint8)),
]
IDS = [f"{field.kind}{i}" for i, (field, _) in enumerate(EXAMPLES)]


@pytest.mark.parametrize(("field", "raw"), EXAMPLES, ids=IDS)
def test_what_every_field_promises(field, raw):
    array = field.encode(raw)
    assert array.dtype == field.dtype
    assert array.shape == (((len(array),) if field.ragged else ()) + field.element)
    assert np.array_equal(field.decode(array), raw)
    assert field.unknown(raw, array) == 0
    again = field_from_plain(json.loads(json.dumps(field.plain())))
    assert np.array_equal(again.encode(raw), array)
    assert again.plain() == field.plain()


def test_a_label_stored_without_the_most_frequent_one_is_read():
    for field in (LABEL, LABELS):
        plain = {name: value for name, value in field.plain().items() if name != "frequent"}
        assert field_from_plain(plain).plain()["frequent"] is None


def test_every_kind_is_here():
    assert {field.kind for field, _ in EXAMPLES} == set(kinds)


def test_text():
    array = TEXT.encode("ax")
    assert array.tolist() == [4, UNK]
    assert TEXT.unknown("ax", array) == 1
    assert TEXT.tokens(array) == ["a", "<unk>"]


def test_words_keep_both_ends():
    array = CHARS.encode(["cat", "abcdefgh"])
    c, a = 6, 4
    assert array.tolist() == [[5, c, a, UNK, 0], [UNK, 4, 5, 10, 11]]  # "ab" and "gh" of "abcdefgh"
    assert CHARS.unknown([], array) == 1


def test_an_unseen_label_equals_no_prediction():
    assert LABEL.encode("other") == -1
    assert LABEL.decode(np.array(-1)) == "<unk>"
    assert LABELS.encode(["N", "X"]).tolist() == [0, -1]
    assert LABELS.unknown(["N", "X"], LABELS.encode(["N", "X"])) == 1


def test_several_labels_come_as_text_or_list():
    assert MULTI.encode("c, a,zzz").tolist() == [1, 0, 1]
    assert MULTI.encode("").tolist() == [0, 0, 0]
    assert MULTI.unknown("c, a,zzz", MULTI.encode("c, a,zzz")) == 1


def test_numbers_are_scaled():
    assert VALUE.encode("12") == np.float32(0.5)
    assert VECTORS.encode([[5, 2], [1, 9]]).tolist() == [[2.0, 0.0], [0.0, 7.0]]  # deviation 0 counts as 1
    assert VectorsField(1, [3.0], [2.0], scale=False).encode([1, 2]).tolist() == [[1], [2]]


def test_missing_becomes_the_training_mean():
    assert HOLES.encode([[np.nan, 4.0]]).tolist() == [[0.0, 2.0]]
    unscaled = VectorsField(1, [3.0], [2.0], scale=False, missing=True)
    assert unscaled.encode([np.nan]).tolist() == [[3.0]]


REFUSED = [
    (TEXT, 3, "Text must be text, but is int: 3"),
    (WORDS, "the cat", "Words must be a list of text, but are str"),
    (LABEL, None, "A label must be text, but is NoneType"),
    (VALUE, "ten", "A value must be a number, but is 'ten'"),
    (VALUE, float("nan"), "must be finite, but is nan"),
    (VECTORS, [[1.0, np.nan]], "Step 1, channel 2 of the series is nan.*declare missing ones"),
    (HOLES, [[1.0, np.inf]], "Step 1, channel 2 of the series is inf"),
    (VECTORS, [[1.0], [2.0]], r"must have shape \(steps, 2\), but has \(2, 1\)"),
    (VECTORS, [[1.0, 2.0], [2.0]], "as many in every step"),
    (FramesField(3), [[0, 2, 0]], "Frames hold 0 and 1 only"),
    (FramesField(3), [0, 1, 0], r"shape \(steps, 3\), but these have \(3,\)"),
]


@pytest.mark.parametrize(("field", "raw", "message"), REFUSED)
def test_refused(field, raw, message):
    with pytest.raises(DataError, match=message) as error:
        field.encode(raw)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: VectorsField(10**6), "1 to 65,536 numbers a step, but this one has 1,000,000.*transpose"),
        (lambda: VectorsField(0), "1 to 65,536 numbers a step, but this one has 0"),
        (lambda: FramesField(10**6), "1 to 65,536"),
        (lambda: LabelField([str(i) for i in range(65537)]), "at most 65,536 different labels"),
        (lambda: WordsField(Vocabulary([]), max_chars=10**7), "`max_chars` must be from 1 to 1024"),
    ],
)
def test_absurd_sizes(make, message):
    with pytest.raises(DataError, match=message):
        make()


@pytest.mark.parametrize(
    "plain", [{}, {"kind": "text"}, {"kind": "value", "mean": None, "std": 1}, {"kind": "label"}]
)
def test_damaged(plain):
    with pytest.raises(ArtefactError, match="stored field is damaged"):
        field_from_plain(plain)
