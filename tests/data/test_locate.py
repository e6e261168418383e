"""Where data files are looked for."""

import zipfile
from pathlib import Path

import pytest

from weft.core.errors import DataError
from weft.data.locate import DataMissing, locate


@pytest.fixture
def places(tmp_path, monkeypatch):
    """Return the four places a name is looked for, in their order."""
    here = tmp_path / "project"
    found = [here, tmp_path / "given", here / "data", tmp_path / "shared" / "data"]
    for place in found:
        place.mkdir(parents=True)
    monkeypatch.chdir(here)
    monkeypatch.setenv("WEFT_DATA", str(found[1]))
    return found


def test_the_first_place_that_has_it_wins(places):
    for place in reversed(places):
        (place / "a.txt").write_text("x")
        assert locate("a.txt").resolve() == (place / "a.txt").resolve()


def test_an_absolute_path_is_looked_for_once(places, tmp_path):
    (places[2] / "a.txt").write_text("x")
    with pytest.raises(DataMissing, match="There is no file"):
        locate(tmp_path / "a.txt")


def test_a_member_of_an_archive_is_found(places):
    with zipfile.ZipFile(places[2] / "a.zip", "w") as archive:
        archive.writestr("b.txt", "x")
    assert locate("a.zip/b.txt") == Path("data/a.zip/b.txt")


def test_what_is_missing_names_the_places(places):
    with pytest.raises(
        DataMissing, match=r"no file `b/a\.txt`\. Looked in: b, .*given/b, data/b, \.\./shared/data/b"
    ):
        locate("b/a.txt")
    assert issubclass(DataMissing, DataError)


def test_a_file_spelt_alike_is_named(places):
    (places[2] / "train.tsv").write_text("x")
    with pytest.raises(DataMissing, match=r"Did you mean `data/train\.tsv`\?"):
        locate("trian.tsv")


def test_no_name_is_refused():
    with pytest.raises(DataMissing, match="must have a name"):
        locate(" ")
