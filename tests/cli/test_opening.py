import pytest

from weft.cli.opening import USING, check_keys, check_search
from weft.core.errors import ConfigError


def test_what_training_settled_is_refused():
    check_keys({"decoding": {}, "device": "cpu"}, USING)
    with pytest.raises(ConfigError, match=r"`seed` is settled by training\. Free here: device, threads"):
        check_keys({"seed": 3, "decoding": {}}, (*USING,)[:3])
    with pytest.raises(ConfigError, match=r"Did you mean `decoding\.nbest`"):
        check_keys({"nbest": 3}, USING)


def test_how_files_are_read_may_change_but_not_the_vocabulary():
    check_keys({"data": {"test": "x.tsv", "columns": "2,1", "max_length": 9}}, ("data",))
    with pytest.raises(ConfigError, match=r"`data\.vocabulary` is settled"):
        check_keys({"data": {"vocabulary": 9}}, ("data",))


def test_keys_of_another_method_are_refused():
    check_search({"beam": 3}, "beam")
    check_search({"max_length": 3}, "greedy")
    with pytest.raises(ConfigError, match=r"`decoding\.top_k` belongs to method sample, but .* is beam"):
        check_search({"top_k": 3}, "beam")
