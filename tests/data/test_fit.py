import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.core.errors import ArtefactError, ConfigError, DataError
from weft.data.fields import (
    LabelField,
    TextField,
    ValueField,
    VectorsField,
    WordsField,
    field_from_plain,
)
from weft.data.fit import FieldOptions, Moments, fit_field, fit_fields, fit_vectors, load_fields, save_fields
from weft.data.rows import Row

OPTIONS = FieldOptions()


@pytest.mark.parametrize("tokens", ["char", "byte", "word", "subword"])
def test_text_by_kind_of_tokens(tokens):
    field = fit_field("text", iter(["ein hund", "ein haus"]), FieldOptions(tokens=tokens, vocabulary=300))
    assert isinstance(field, TextField)
    assert field.tokenizer.kind == tokens
    assert field.decode(field.encode("ein hund")) == "ein hund"


def test_words_with_and_without_characters():
    items = [["the", "cat"], ["the", "dog"]]
    plain = fit_field("words", items, FieldOptions(vocabulary=6))
    assert isinstance(plain, WordsField)
    assert plain.words.words == ("the", "cat")
    assert plain.element == (1,)
    chars = fit_field("words", items, FieldOptions(words="chars", max_chars=5))
    assert isinstance(chars, WordsField)
    assert chars.element == (6,)
    assert chars.chars is not None
    assert chars.chars.words == ("t", "e", "h", "a", "c", "d", "g", "o")  # counted in running text


def test_labels_in_the_order_of_names():
    field = fit_field("label", ["pos", "neg", "pos"], OPTIONS)
    assert isinstance(field, LabelField)
    assert (field.names, field.frequent) == (("neg", "pos"), "pos")
    several = fit_field("label", ["b,a", ["c"], ""], FieldOptions(multi_label=True))
    assert isinstance(several, LabelField)
    assert several.names == ("a", "b", "c")


@pytest.mark.parametrize(("items", "frequent"), [([["N"], ["V", "V"]], "V"), ([["V"], ["N"]], "N")])
def test_the_most_frequent_label_is_kept_of_equals_the_first(items, frequent):
    field = fit_field("labels", items, OPTIONS)
    assert field.plain()["frequent"] == frequent


def test_numbers():
    field = fit_field("value", [1, "2", 6], OPTIONS)
    assert isinstance(field, ValueField)
    assert field.mean == pytest.approx(3)
    assert field.std == pytest.approx(np.sqrt(14 / 3))
    same = fit_field("value", [1, 2], FieldOptions(scale=False))
    assert isinstance(same, ValueField)
    assert (same.mean, same.std) == (0, 1)


def test_series_with_holes():
    field = fit_vectors([[[1.0, np.nan], [3.0, 5.0]], [[5.0, 7.0]]], OPTIONS, missing=True)
    assert field.mean.tolist() == [3, 6]
    assert field.std.tolist() == pytest.approx([np.sqrt(8 / 3), 1])
    with pytest.raises(DataError, match="Step 1, channel 2"):
        fit_vectors([[[1.0, np.nan]]], OPTIONS)


def test_series_of_another_width():
    with pytest.raises(DataError, match=r"shape \(steps, 2\), but has \(1, 3\)"):
        fit_vectors([[[1.0, 2.0]], [[1.0, 2.0, 3.0]]], OPTIONS)


@given(st.lists(st.lists(st.floats(-1e6, 1e6), max_size=5), min_size=1, max_size=6))
def test_moments_merge(pieces):
    moments = Moments(1)
    for piece in pieces:
        moments.add(np.array(piece).reshape(-1, 1))
    flat = np.concatenate([np.array(piece) for piece in pieces])
    expected = (flat.mean(), flat.std()) if len(flat) else (0, 0)
    assert (moments.mean[0], moments.std[0]) == pytest.approx(expected, rel=1e-9, abs=1e-6)


def test_far_from_zero_the_deviation_keeps_its_digits():
    moments = Moments(1)
    for value in (1e9, 1e9 + 1, 1e9 + 2):
        moments.add(np.array([[value]]))
    assert moments.std[0] == pytest.approx(np.sqrt(2 / 3), rel=1e-6)


def test_fields_of_a_schema():
    rows = [Row(1, ("a b", "pos")), Row(2, ("b", "neg"))]
    fields = fit_fields(rows, {"text": "text", "label": "label"}, FieldOptions(tokens="word"))
    assert list(fields) == ["text", "label"]
    assert fields["text"].encode("b a").tolist() == [4, 5]


def test_a_shared_vocabulary():
    rows = [Row(1, ("a", "b"))]
    schema = {"source": "text", "target": "text"}
    fields = fit_fields(rows, schema, FieldOptions(tokens="word", shared=True))
    assert fields["source"] is fields["target"]
    assert fields["source"].encode("a b").tolist() == [4, 5]


def test_the_change_of_series_from_season_to_season():
    series = [[[1, 5], [2, 5], [4, 5], [np.nan, 5]], [[7, 5]], [[0, 5], [9, 5], [3, 5]]]
    field = fit_field("values", series, FieldOptions(season=2), missing=True)
    assert field.change.tolist() == [3.0, 0.0]  # |4 - 1| and |3 - 0|; a short series and NaN tell nothing
    assert field_from_plain(field.plain()).change.tolist() == field.change.tolist()


def test_no_label_at_all():
    with pytest.raises(DataError, match="no label in the training data"):
        fit_field("labels", [[]], OPTIONS)


def test_one_label_is_none():
    with pytest.raises(DataError, match="Every training item has the label `ham`; there must be two"):
        fit_field("label", ["ham", "ham"], OPTIONS)


def test_too_many_labels():
    with pytest.raises(DataError, match="at most 65,536 different labels, but here are 65,537"):
        fit_field("label", map(str, range(10**6)), OPTIONS)


def test_an_unknown_kind():
    with pytest.raises(ConfigError, match="no kind of field `picture`"):
        fit_field("picture", [], OPTIONS)


def test_not_text():
    with pytest.raises(DataError, match="There must be text, but there is int: 3"):
        fit_field("text", [3], OPTIONS)


def test_stored_and_loaded(tmp_path):
    fields = {
        "x": fit_field("text", ["é \ud800"], FieldOptions(tokens="char")),
        "y": VectorsField(1, [0.1], [3.0]),
    }
    path = tmp_path / "tokenizer.json"
    save_fields(fields, path)
    again = load_fields(path)
    assert list(again) == ["x", "y"]
    assert [field.plain() for field in again.values()] == [field.plain() for field in fields.values()]
    assert [p.name for p in tmp_path.iterdir()] == ["tokenizer.json"]


def test_a_newer_or_damaged_file(tmp_path):
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps({"format": 2, "fields": {}}))
    with pytest.raises(ArtefactError, match=r"has format 2, but this weft reads 1. Update weft."):
        load_fields(path)
    for text in ("{", "[]", "null", '{"format": 1}', '{"format": 1, "fields": 3}'):
        path.write_text(text)
        with pytest.raises(ArtefactError, match="holds no fields"):
            load_fields(path)
