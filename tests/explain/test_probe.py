import copy

import torch
from explained import settings_of, task_and_data

from weft.explain import measure_speed
from weft.training import TrainConfig


def test_ten_steps_leave_nothing_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    settings = settings_of(model={"family": "lstm", "width": 8, "layers": 1})
    task, data = task_and_data(settings, [5, 6, 7])
    model = task.build(settings.model)
    before = copy.deepcopy(model.state_dict())
    config = TrainConfig(epochs=1, patience=3, schedule="plateau", metric="loss")
    speed = measure_speed(model, task, task.feed(data, 1), config, 1)
    assert (speed.steps, speed.tokens) == (8, 8 * 18)
    assert speed.tokens_per_second > 0
    assert not torch.equal(before["head.bias"], model.state_dict()["head.bias"])
    assert list(tmp_path.iterdir()) == []
