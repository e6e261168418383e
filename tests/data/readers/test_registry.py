"""The table of readers, and what every reader is given."""

import pytest

from weft.core.errors import ConfigError, DataError
from weft.data.readers import readers
from weft.data.rows import FORMATS
from weft.data.source import RowSource


def test_every_format_has_a_reader():
    assert set(readers) == set(FORMATS) - {"auto"}


def test_an_unknown_format_names_the_nearest():
    with pytest.raises(ConfigError, match=r"no data\.format `cvs`\. Did you mean `csv`"):
        readers["cvs"]


def test_words_and_labels_must_be_as_many():
    rows = RowSource.from_memory([(["a", "b"], ["X", "Y"]), (["a", "b"], ["X"])], ("words", "labels"))
    with pytest.raises(
        DataError, match=r"memory, line 2: There are 2 words, but 1 labels\. Give one label a word"
    ):
        list(rows)


def test_kinds_a_format_does_not_give_are_refused(tmp_path):
    path = tmp_path / "a.fasta"
    path.write_text(">a x\nMK\n")
    with pytest.raises(
        DataError, match=r"Format `fasta` gives text and label and value, but words, labels are wanted"
    ):
        list(RowSource(path, kinds=("words", "labels")))
