from tiny_runs import weft_inside

from weft.runs import RunFolder


def test_a_report_has_pictures_of_alignments(reverse_run):
    page = reverse_run / "report.html"
    ended = weft_inside("report", str(reverse_run), "--pictures", "2")
    assert (ended.code, ended.out) == (0, f"{page}\n")
    assert page.read_text().count("attention of the output") == 2


def test_without_its_data_a_report_says_what_it_lacks(reverse_run):
    ended = weft_inside("report", str(reverse_run), "data.test=gone.tsv", "data.valid=gone.tsv")
    assert ended.code == 0
    assert "No alignments of test items: There is no file `gone.tsv`." in ended.err


def test_checkpoints_are_averaged(reverse_run):
    ended = weft_inside("average", str(reverse_run), "--last", "2")
    assert ended.code == 0
    name = RunFolder.open(reverse_run).averages()[-1].name
    assert f"--checkpoint {name}" in ended.out
    assert weft_inside("predict", str(reverse_run), "--checkpoint", name, stdin=b"abc\n").code == 0


def test_too_few_checkpoints_are_refused(reverse_run):
    ended = weft_inside("average", str(reverse_run), "--last", "50")
    assert ended.code == 2
    assert "checkpoints, but 50 are to be averaged" in ended.err
