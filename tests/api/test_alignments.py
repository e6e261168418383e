import numpy as np
from tiny_runs import train_classes

import weft
from weft.api import alignments
from weft.api.alignments import known_pairs, part_alignments
from weft.api.report import write_report


def test_sources_that_fit_a_picture_are_drawn(reverse_run):
    run = weft.open(reverse_run)
    found = alignments(run, ["", "abc", "a" * 80, "bad", "ccc"], count=2)
    assert ["".join(one.source) for one in found] == ["abc", "bad"]
    np.testing.assert_allclose(found[0].weights.sum(1), 1, atol=1e-5)
    assert found[0].weights.shape == (3, 3)


def test_a_model_that_reads_letters_backwards_looks_there(reverse_run):
    (one,) = alignments(weft.open(reverse_run), ["abc"], count=1)
    assert one.weights.argmax(1).tolist()[0] in (1, 2)  # the first letter out is the last one in


def test_what_is_known_to_be_true_is_drawn_too(reverse_run):
    (reverse_run.parent / "test.align").write_text("0-2 1-1 2-0\nnonsense\n" * 1)
    run = weft.open(reverse_run)
    assert known_pairs(run, "test") == {}  # a broken file tells nothing
    (reverse_run.parent / "test.align").write_text("0-2 1-1 2-0\n" * 64)
    assert known_pairs(run, "test")[64] == ((2, 0), (1, 1), (0, 2))
    assert part_alignments(run, count=1)[0].truth == ((2, 0), (1, 1), (0, 2))
    assert known_pairs(run, "valid") == {}


def test_a_classifier_has_none_but_a_report(tmp_path):
    run = train_classes(tmp_path)
    assert alignments(run, ["x 1"]) == []
    assert "Learning curves" in write_report(run).read_text()
