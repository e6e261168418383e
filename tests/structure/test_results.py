"""README's table says what the result files say."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_the_table_is_current():
    spec = importlib.util.spec_from_file_location("results_script", ROOT / "scripts" / "results.py")
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    import sys

    sys.modules[spec.name] = script
    spec.loader.exec_module(script)
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    shown = text.split(script.BEGIN)[1].split(script.END)[0].strip()
    assert shown == script.table(), "run `python scripts/results.py --table`"
