"""The manifest's text is canonical, sealed, and says its format."""

from dataclasses import replace

import pytest

from weft.core.errors import ArtefactError
from weft.runs import manifest as manifests
from weft.runs.manifest import Manifest, NewerFormat
from weft.runs.storage import Digest

SOME = Manifest(12, True, {"a": Digest("ab" * 32, 3)}, {"config.yaml": ("cd" * 32,)})


def written(folder, text):
    (folder / manifests.NAME).write_text(text)
    return folder


def test_it_comes_back(tmp_path):
    assert manifests.read(written(tmp_path, manifests.render(SOME))) == SOME


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace(" ", "  ", 1),
        lambda text: text + "\n",
        lambda text: text.replace('"step": 12', '"step": 13'),
        lambda text: text.replace("ab", "AB"),
        lambda text: "[]",
        lambda text: "",
        lambda text: "[" * 100_000,
    ],
)
def test_any_other_text_is_damaged(tmp_path, change):
    with pytest.raises(ArtefactError, match=r"manifest\.json is (missing or )?damaged"):
        manifests.read(written(tmp_path, change(manifests.render(SOME))))


def test_a_newer_format_is_refused_as_such(tmp_path):
    newer = manifests.render(replace(SOME, format=manifests.FORMAT + 1))
    with pytest.raises(NewerFormat, match=r"has format 2, but this weft reads up to 1\. Upgrade weft"):
        manifests.read(written(tmp_path, newer))
