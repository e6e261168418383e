"""Which kernels "auto" may take."""

import subprocess
import sys

import pytest

from weft.core.errors import ConfigError
from weft.ops import trust


def test_the_environment_says_which_kernels_are_taken():
    assert trust.read_trust(None) == trust.PROVEN <= trust.KERNELS
    assert trust.read_trust("all") == trust.KERNELS
    assert trust.read_trust("none") == trust.read_trust("") == frozenset()
    assert trust.read_trust("loss, blocks") == {"loss", "blocks"}


def test_a_kernel_that_does_not_exist_is_refused():
    with pytest.raises(ConfigError, match=r"WEFT_KERNELS names `blokcs`, no kernel. Did you mean `blocks`\?"):
        trust.read_trust("blokcs")


def test_every_kernel_is_asked_for_where_it_is_chosen():
    code = "import weft.ops, weft.ops.trust as t; print(sorted(t.TRUSTED))"
    done = subprocess.run(
        [sys.executable, "-c", code], env={"WEFT_KERNELS": "additive"}, capture_output=True, text=True
    )
    assert done.stdout.strip() == "['additive']", done.stderr
