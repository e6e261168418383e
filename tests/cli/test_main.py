import pytest
from program import weft

import weft as package


def test_version():
    result = weft("--version")
    assert (result.returncode, result.stdout, result.stderr) == (0, f"weft {package.__version__}\n", "")


def test_help_names_the_verbs():
    result = weft("-h")
    assert result.returncode == 0
    assert "doctor" in result.stdout
    assert "data" in result.stdout


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["trian"], "weft: No such command 'trian'."),
        (["data", "chekc"], "weft: No such command 'chekc'."),
        (["--speed"], "weft: No such option: --speed"),
    ],
)
def test_a_wrong_word_is_one_line(words, line):
    result = weft(*words)
    assert result.returncode == 2
    assert result.stderr.startswith(line)
    assert result.stderr.count("\n") == 1
    assert result.stdout == ""


def test_public_names_load_when_used():
    assert set(package.__all__) <= set(dir(package))
    assert package.ops.__name__ == "weft.ops"
    with pytest.raises(AttributeError, match="module `weft` has no attribute `trian`"):
        package.__getattr__("trian")
