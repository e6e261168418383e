"""Public data sets weft's recipes know by name: what each is for and the files it has."""

from __future__ import annotations

from typing import NamedTuple


class NamedSet(NamedTuple):
    """One data set: the tasks it serves and its files, as `locate` knows them."""

    tasks: str
    files: tuple[str, ...]


def _parts(pattern: str, *parts: str) -> tuple[str, ...]:
    return tuple(pattern.format(part) for part in parts)


_SPLITS = ("train", "valid", "test")
_PAIRS = ("train", "val", "test_2016_flickr", "test_2017_flickr", "test_2017_mscoco", "test_2018_flickr")

NAMED_SETS = {
    "ett": NamedSet("forecast", ("ett/ETTh1.csv.xz",)),
    "lambada": NamedSet("language", ("lambada/lambada_test.jsonl.xz",)),
    "multi30k": NamedSet(
        "translate",
        tuple(f"multi30k/{part}.{language}.gz" for part in _PAIRS for language in ("en", "de", "fr")),
    ),
    "names_18lang": NamedSet("classify", ("names_18lang/names.zip",)),
    "polyphonic": NamedSet(
        "music", _parts("polyphonic/{}.mat", "JSB_Chorales", "Nottingham", "MuseData", "Piano_midi")
    ),
    "protein_ss": NamedSet("tag", ("protein_ss/cb513.tsv.gz",)),
    "protein_tm50": NamedSet("regress", _parts("protein_tm50/Tm50{}.csv.gz", "Train", "Test")),
    "ptb": NamedSet("language", _parts("ptb/ptb.{}.txt.xz", *_SPLITS)),
    "samsum": NamedSet("translate", _parts("samsum/{}.csv.xz", "train", "validation", "test")),
    "scitldr_a": NamedSet("translate", _parts("scitldr_a/{}.jsonl.xz", "train", "dev", "test")),
    "sst": NamedSet(
        "classify",
        tuple(
            f"sst/stsa.{kind}.{part}.gz" for kind in ("binary", "fine") for part in ("train", "dev", "test")
        ),
    ),
    "tiny_shakespeare": NamedSet("language", ("tiny_shakespeare/input.txt.xz",)),
    "ud_english_ewt": NamedSet(
        "tag", _parts("ud_english_ewt/en_ewt-ud-{}.conllu.xz", "train", "dev", "test")
    ),
    "wikitext2": NamedSet("language", _parts("wikitext2/{}.txt.xz", *_SPLITS)),
}
