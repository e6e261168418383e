import pytest
from small_models import BOTH, FAMILIES

from weft.core.config import Word
from weft.core.errors import ConfigError
from weft.models import parse_count, parse_model


def test_one_family_serves_both_sides():
    config = parse_model({"family": "gru", "layers": 3}, BOTH)
    assert config.families == "gru"
    assert [side.options.layers for side in config.sides.values()] == [3, 3]
    assert (config.sides["encoder"].bidirectional, config.sides["decoder"].bidirectional) == (True, False)


def test_each_side_may_have_its_own():
    config = parse_model(
        {
            "family": "lstm",
            "layers": 2,
            "heads": 2,
            "encoder": {"family": "transformer"},
            "decoder": {"layers": 1},
        },
        BOTH,
    )
    assert config.families == "transformer-lstm"
    assert config.sides["encoder"].options.heads == 2  # lstm does not know it and is not asked
    assert [side.options.layers for side in config.sides.values()] == [2, 1]


def test_family_and_attention_in_one_word():
    config = parse_model({"family": "lstm+additive"}, BOTH)
    assert (config.families, config.common.attention) == ("lstm", "additive")


def test_words_of_a_command_line():
    config = parse_model(
        {"family": Word("lstm"), "layers": Word("3"), "encoder": {"bidirectional": Word("false")}}, BOTH
    )
    assert config.sides["decoder"].options.layers == 3
    assert not config.sides["encoder"].bidirectional


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("needed", [("encoder",), ("decoder",), BOTH])
def test_what_is_written_is_read_again(family, needed):
    config = parse_model({"family": family, "width": 32, "layers": 3, "dropout": 0.2, "budget": "1M"}, needed)
    assert parse_model(config.plain(), needed) == config


ONE_WAY = ("decoder",)


@pytest.mark.parametrize(
    ("values", "needed", "message"),
    [
        ({"family": "lstn"}, BOTH, r"There is no family `lstn`. Did you mean `lstm`\?"),
        (
            {"family": "lstm+aditive"},
            BOTH,
            r"`model.attention` cannot be `aditive`. Did you mean `additive`\?",
        ),
        ({"layer": 2}, BOTH, r"There is no key `model.layer` for lstm. Did you mean `model.layers`\?"),
        ({"family": "tcn", "heads": 2}, BOTH, r"There is no key `model.heads` for tcn."),
        ({"layers": 0}, BOTH, "`model.encoder.layers` must be at least 1, but is 0."),
        ({"decoder": {"layers": "x"}}, BOTH, "`model.decoder.layers` must be a whole number, but is 'x'."),
        (
            {"decoder": {"layer": 1}},
            BOTH,
            r"There is no key `model.decoder.layer`. Did you mean `model.decoder.layers",
        ),
        ({"encoder": 3}, BOTH, "`model.encoder` must be a mapping of keys to values, but is 3."),
        ({"width": 0}, BOTH, "`model.width` must be at least 1, but is 0."),
        ({"width": "wide"}, BOTH, "`model.width` must be a whole number, but is 'wide'."),
        ({"pooling": "men"}, ("encoder",), r"`model.pooling` cannot be `men`. Did you mean `mean`\?"),
        (
            {"decoder": {"bidirectional": True}},
            BOTH,
            "A decoder must be causal, but `model.decoder.bidirectional`",
        ),
        ({"bidirectional": True}, ONE_WAY, "must be (causal|false)"),
        (
            {"encoder": {"layers": 2}},
            ONE_WAY,
            "This task has no encoder, but `model.encoder` is given. Leave it out.",
        ),
        ({"decoder": {"layers": 2}}, ("encoder",), "This task has no decoder, but `model.decoder` is given."),
        (
            {"bidirectional": "maybe"},
            ("encoder",),
            "`model.bidirectional` must be true or false, but is 'maybe'.",
        ),
        ({"reset": "never", "family": "gru"}, BOTH, r"`model.encoder.reset` cannot be `never`."),
    ],
)
def test_errors_say_the_rule_the_value_and_the_way_out(values, needed, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_model(values, needed)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("text", ["both", "true"])
def test_a_shared_bidirectional_speaks_to_the_encoder_alone(text):
    if text == "true":
        config = parse_model({"bidirectional": True}, BOTH)
        assert [side.bidirectional for side in config.sides.values()] == [True, False]
    else:
        with pytest.raises(ConfigError, match="must be true or false"):
            parse_model({"bidirectional": text}, BOTH)


@pytest.mark.parametrize(
    ("text", "count"),
    [("5M", 5_000_000), ("300k", 300_000), ("1.5B", 1_500_000_000), ("1_000", 1000), ("12,500", 12_500)],
)
def test_a_count_is_read(text, count):
    assert parse_count(text) == count


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("many", "`model.budget` must be a number such as 300K or 5M, but is 'many'."),
        ("", "`model.budget` must be a number such as 300K or 5M, but is ''."),
        ("M", "`model.budget` must be a number such as 300K or 5M, but is 'M'."),
        ("0", "`model.budget` must be at least 1, but is 0."),
        ("-5M", "`model.budget` must be at least 1, but is -5M."),
        ("inf", "`model.budget` must be a number such as 300K or 5M, but is 'inf'."),
        ("nan", "`model.budget` must be a number such as 300K or 5M, but is 'nan'."),
    ],
)
def test_a_count_that_is_none_is_refused(text, message):
    with pytest.raises(ConfigError, match=message):
        parse_count(text)
