import pytest
from explained import settings_of

from weft.core.errors import ConfigError
from weft.data import BOS, EOS, FieldOptions, LabelField, ValueField, VectorsField, Vocabulary, WordsField
from weft.explain import made_up, stated_fields


@pytest.mark.parametrize(("tokens", "size"), [("char", 50), ("word", 50), ("subword", 50), ("byte", 260)])
def test_stated_vocabulary(tokens, size):
    fields = stated_fields({"source": "text", "target": "text"}, FieldOptions(tokens=tokens, vocabulary=50))
    assert {field.size for field in fields.values()} == {size}


def test_shared_vocabulary_is_one():
    fields = stated_fields({"source": "text", "target": "text"}, FieldOptions(shared=True))
    assert fields["source"] is fields["target"]


def test_what_is_no_text_needs_data():
    schema = settings_of(task={"name": "classify"}).schema()
    with pytest.raises(ConfigError, match="how large its label is, only a file tells"):
        stated_fields(schema, FieldOptions())


def test_made_up_items_are_what_fields_say():
    words = Vocabulary(["a", "b"])
    fields = {
        "words": WordsField(words, words, 5),
        "label": LabelField(["x", "y"]),
        "labels": LabelField(["x", "y"], multi=True),
        "value": ValueField(),
        "series": VectorsField(3, [0, 0, 0], [1, 1, 1]),
    }
    data = made_up(fields, [4, 1])
    item = data.item(0)
    assert item["words"].shape == (4, 6)
    assert (item["words"] > max(BOS, EOS)).all()
    assert item["label"].shape == ()
    assert item["labels"].shape == (2,)
    assert item["value"].shape == ()
    assert item["series"].shape == (4, 3)
    assert data.lengths("series").tolist() == [4, 1]
    assert (made_up(fields, [4, 1]).item(1)["series"] == data.item(1)["series"]).all()
