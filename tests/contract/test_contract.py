"""Every family, direction and attention kind keeps the contract."""

import pytest

from weft.testing import Case, cases, checks_for

PAIRS = [(case, check) for case in cases() for check in checks_for(case)]
VARIANTS = [
    Case("lstm", options={"residual": True, "layers": 3}),
    Case("lstm", "both", options={"residual": True, "layers": 3}),
    Case("lstm", attention="additive", options={"feed": "output"}),
    Case("lstm", attention="dot", options={"locked": True, "chrono": 20}),
    Case("gru", options={"reset": "before"}),
    Case("gru", "both", options={"reset": "before"}),
    Case("gru", attention="concat", options={"reset": "before", "feed": "output"}),
    Case("rnn", options={"activation": "relu", "init": "identity"}),
    Case("tcn", options={"kernel": 2, "layers": 3}),
    Case("transformer", options={"norm": "post", "heads": 2}),
    Case("transformer", "both", options={"norm": "post", "positions": "rotary"}),
    Case("transformer", options={"positions": "rotary", "activation": "gelu"}),
    Case("transformer", options={"positions": "learned", "position_mode": "concat"}),
    Case("transformer", options={"positions": "index"}),
    Case("transformer", options={"positions": "none", "neighbourhood": 2}),
    Case("transformer", "both", options={"neighbourhood": 1}),
]
PAIRS += [(case, check) for case in VARIANTS for check in checks_for(case)]


@pytest.mark.parametrize(("case", "check"), PAIRS, ids=lambda value: getattr(value, "__name__", str(value)))
def test_contract(case, check):
    check(case)
