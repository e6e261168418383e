import pytest

from weft.core.config import parse
from weft.core.errors import ConfigError
from weft.decoding.config import DecodingConfig


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"method": "bean"}, r"`decoding.method` cannot be `bean`. Did you mean `beam`"),
        ({"beam": 0}, r"`decoding.beam` must be at least 1, but is 0"),
        ({"top_p": 1.5}, r"`decoding.top_p` must be at most 1.0, but is 1.5"),
        ({"method": "beam", "beam": 2, "nbest": 3}, r"must be at most `decoding.beam` \(2\), but is 3. Try"),
        ({"min_length": 9, "max_length": 4}, r"must be at most `decoding.max_length` \(4\), but is 9. Try"),
    ],
)
def test_wrong_values_are_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        parse(DecodingConfig, values, "decoding")


def test_defaults_are_accepted():
    assert parse(DecodingConfig, {}, "decoding") == DecodingConfig()
