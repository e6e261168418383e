import subprocess
import sys

import weft.data


def test_every_name_has_one_home():
    names = [name for names in weft.data._HOMES.values() for name in names]
    assert sorted(names) == sorted(weft.data.__all__) == dir(weft.data)
    assert len(set(names)) == len(names)


def test_importing_the_room_costs_nothing():
    code = "import sys, weft.data; print(*(m for m in ('torch', 'numpy', 'tokenizers') if m in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
