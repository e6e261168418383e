"""What cannot be done together is refused with the way out."""

import pytest

from weft.core.config import parse
from weft.core.errors import ConfigError
from weft.training import TrainConfig
from weft.training.config import check, epochs_limit


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"betas": [0.9]}, r"`train.betas` must be two numbers, but is \(0.9,\)"),
        ({"schedule": "cosine", "minutes": 3.0}, r"cosine must know its end.*Set one of them"),
        ({"schedule": "inverse_sqrt"}, r"inverse_sqrt needs `train.warmup`, but it is 0\. Try 4000"),
        ({"patience": 2}, r"`train.patience` needs validation data, but there is none\. Set `data.valid`"),
        ({"schedule": "plateau"}, r"`train.schedule` needs validation data"),
        ({"optimizer": "adamm"}, r"`train.optimizer` cannot be `adamm`\. Did you mean `adam`\?"),
        ({"accumulate": 0}, r"`train.accumulate` must be at least 1, but is 0"),
    ],
)
def test_what_does_not_go_together_is_refused(values, message):
    with pytest.raises(ConfigError, match=message):
        check(parse(TrainConfig, values, "train"), validated=False)


def test_without_any_limit_ten_epochs_are_trained_and_more_of_a_small_file():
    assert epochs_limit(TrainConfig(), 30) == epochs_limit(TrainConfig(), 1000) == 10
    assert epochs_limit(TrainConfig(), 7) == 43
    assert epochs_limit(TrainConfig(), 1) == 300
    assert epochs_limit(TrainConfig(steps=5), 7) is None
    assert epochs_limit(TrainConfig(steps=5, epochs=3), 7) == 3
