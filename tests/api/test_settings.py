import pytest
import torch

from weft.api.settings import normalise, parse_settings
from weft.core.errors import ConfigError
from weft.core.text import dump_yaml, load_yaml
from weft.tasks import tasks


def test_short_forms_mean_the_long_ones():
    short = parse_settings({"task": "translate", "model": "lstm+additive"})
    long = parse_settings(
        {"task": {"name": "translate"}, "model": {"family": "lstm", "attention": "additive"}}
    )
    assert short == long
    assert normalise({"task": "x", "seed": 3}) == {"task": {"name": "x"}, "seed": 3}


@pytest.mark.parametrize("task", sorted(tasks))
def test_what_is_written_is_read_again_for_every_task(task):
    settings = parse_settings({"task": task, "seed": 7, "model": {"width": 32}, "train": {"lr": 1e-5}})
    text = dump_yaml(settings.plain())
    assert parse_settings(load_yaml(text, "config.yaml")) == settings
    assert dump_yaml(parse_settings(load_yaml(text, "config.yaml")).plain()) == text


def test_the_folder_is_no_part_of_what_is_written():
    assert "run" not in parse_settings({"task": "translate", "run": "runs/x"}).plain()


@pytest.mark.parametrize("task", sorted(tasks))
def test_a_task_sets_defaults_that_a_user_may_change(task):
    for section, values in tasks[task].defaults.items():
        settings = parse_settings({"task": task}).plain()
        for key, value in values.items():
            assert settings[section][key] == (list(value) if isinstance(value, tuple) else value)
    assert parse_settings({"task": task, "train": {"lr": 0.5}, "batch": {"rows": 3}}).train.lr == 0.5


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, r"`task` must be named. Known: .*translate.* Try task=translate."),
        ({"task": "translat"}, r"There is no task `translat`. Did you mean `translate`\?"),
        ({"task": 3}, "`task` must be a mapping of keys to values, but is 3."),
        ({"task": "translate", "trian": {}}, r"There is no key `trian`. Did you mean `train`\?"),
        ({"task": "translate", "sead": 1}, r"There is no key `sead`. Did you mean `seed`\?"),
        (
            {"task": {"name": "translate", "metric": 1}},
            r"There is no key `task.metric`. Did you mean `task.metrics`\?",
        ),
        ({"task": "translate", "seed": -1}, "`seed` must be at least 0, but is -1."),
        ({"task": "translate", "threads": 0}, "`threads` must be at least 1, but is 0."),
        ({"task": "translate", "data": 3}, "`data` must be a mapping of keys to values, but is 3."),
        (
            {"task": "translate", "data": {"tran": "x"}},
            r"There is no key `data.tran`. Did you mean `data.train`\?",
        ),
        ({"task": "translate", "model": 3}, "`model` must be a mapping of keys to values, but is 3."),
        (
            {"task": "translate", "model": {"widht": 3}},
            r"There is no key `model.widht` .*Did you mean `model.width`\?",
        ),
        ({"task": "translate", "train": {"lr": "x"}}, "`train.lr` must be a number, but is 'x'."),
        ({"task": "translate", "train": []}, r"`train` must be a mapping of keys to values, but is \[\]."),
        (
            {"task": "translate", "batch": {"tokens": None}},
            "A batch is sized by `batch.tokens` or by `batch.rows`.",
        ),
        ({"task": "translate", "decoding": {"method": "beem"}}, r"`decoding.method` cannot be `beem`."),
    ],
)
def test_errors_say_the_rule_the_value_and_the_way_out(values, message):
    with pytest.raises(ConfigError, match=message) as caught:
        parse_settings(values)
    assert "\n" not in str(caught.value)


def test_devices():
    assert parse_settings({"task": "translate", "device": "cpu"}).device() == torch.device("cpu")
    wanted = "cuda" if torch.cuda.is_available() else "cpu"
    assert parse_settings({"task": "translate"}).device().type == wanted
    for name in ("cuda:99", "tpu", ""):
        with pytest.raises(ConfigError, match=r"Try device=cpu\."):
            parse_settings({"task": "translate", "device": name}).device()


def test_the_schema_is_the_tasks():
    assert parse_settings({"task": "translate"}).schema() == {"source": "text", "target": "text"}


def test_a_running_text_and_a_series_are_parted_by_position():
    split = {task: parse_settings({"task": task}).data.split for task in ("language", "forecast", "classify")}
    assert split == {"language": "position", "forecast": "position", "classify": "hash"}
