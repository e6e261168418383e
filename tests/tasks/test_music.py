"""Predicting the next frame: hand-worked numbers, a tiny training, pieces as people write them."""

import json
import math

import numpy as np
import pytest
import torch

from weft.api.settings import parse_settings
from weft.api.training import start
from weft.core.errors import DataError
from weft.core.sequences import Sequences
from weft.data import FramesField, prepare
from weft.data.rows import Row
from weft.decoding import DecodingConfig
from weft.models import parse_model
from weft.tasks import BatchConfig, Music
from weft.tasks.music import MusicConfig, known_and_next, piece_sums, read_piece

FAMILIES = ("rnn", "lstm", "gru", "tcn", "transformer")


def piece(steps: int, seed: int = 0) -> np.ndarray:
    return (np.random.default_rng(seed).random((steps, 88)) < 0.05).astype(np.uint8)


ROWS = [Row(i, (piece(steps, i),)) for i, steps in enumerate((4, 1, 7, 2), 1)]


def make(family="gru"):
    field = FramesField(88)
    task = Music(MusicConfig(), {"frames": field}, BatchConfig(rows=8))
    torch.manual_seed(4)
    options = {"family": family, "width": 8, "layers": 1, "dropout": 0, "input_dropout": 0}
    model = task.build(parse_model(options, ("decoder",))).double()
    return task, model, prepare(ROWS, {"frames": field})


def test_a_piece_is_known_but_for_its_last_frame_and_told_but_for_its_first():
    frames = Sequences.pad([torch.arange(3).view(3, 1), torch.tensor([[7]])])
    known, told = known_and_next(frames)
    assert known.unpad()[0].flatten().tolist() == [0, 1]
    assert told.unpad()[0].flatten().tolist() == [1, 2]
    assert known.lengths.tolist() == told.lengths.tolist() == [2, 0]


def test_sums_of_a_piece_by_hand():
    logits = torch.tensor([[[0.0, 2.0], [-1.0, 3.0]]])
    wanted = Sequences(torch.tensor([[[0, 1], [1, 1]]]), torch.tensor([1]))  # the second frame is padding
    nll, frames, hits, united = piece_sums(logits, wanted)[0].tolist()
    assert nll == pytest.approx(math.log(2) + math.log(1 + math.exp(-2)))
    assert (frames, hits, united) == (1, 1, 1)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_frame_nll_is_the_mean_over_all_frames_but_each_first(family):
    task, model, data = make(family)
    found = task.evaluate(model, data, ROWS, DecodingConfig())
    sums, frames = 0.0, 0
    with torch.no_grad():
        for row in ROWS:
            if len(row.values[0]) > 1:
                x = Sequences.full(torch.from_numpy(row.values[0][None, :-1]))
                logits = model.eval().head(model(x)[0].data)[0].double().numpy()
                sums += (np.logaddexp(0, logits) - row.values[0][1:] * logits).sum()
                frames += len(row.values[0]) - 1
    assert frames == 3 + 6 + 1
    assert found.measurements["frame_nll"].value == pytest.approx(sums / frames, rel=1e-5)
    assert task.validate(model, data)["loss"] == pytest.approx(sums / frames, rel=1e-5)
    assert found.lengths.tolist() == [4, 7, 2]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_loss_is_the_sum_over_pieces_alone(family):
    task, model, _ = make(family)
    rows = [torch.from_numpy(row.values[0]) for row in ROWS]
    together = task.loss(model, {"frames": Sequences.pad(rows)}, None, 0.1)
    alone = [task.loss(model, {"frames": Sequences.pad([row])}, None, 0.1) for row in rows if len(row) > 1]
    assert together.total.item() == pytest.approx(sum(loss.total.item() for loss in alone), rel=1e-5)
    assert int(together.count) == 10


def test_pieces_of_one_frame_alone_are_refused():
    task, _, _ = make()
    data = prepare(ROWS[1:2], {"frames": task.frames})
    with pytest.raises(DataError, match="at least 2 frames"):
        task.feed(data, 0)


def test_pieces_are_read_as_keys_or_as_zeros_and_ones():
    rolled = read_piece([[0] * 39 + [1] + [0] * 48, []], 1, 88)
    assert np.array_equal(rolled, read_piece("[[60], []]", 1, 88))
    assert np.argwhere(rolled).tolist() == [[0, 39]]
    assert read_piece("", 1, 88).shape == (0, 88)


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ("[[60", "Input 2 is not JSON"),
        ("[60]", "Input 2 must be a list of frames"),
        ("[[5]]", "MIDI numbers from 21 to 108"),
        ('[["c"]]', "holds 'c'"),
        ("[[true]]", "holds True"),
    ],
)
def test_what_is_no_piece_is_refused(raw, message):
    with pytest.raises(DataError, match=message):
        read_piece(raw, 2, 88)


def test_a_tiny_training_learns_a_trill(tmp_path):
    trill = np.zeros((12, 88), np.uint8)
    trill[::2, 39], trill[1::2, [41, 43]] = 1, 1
    settings = {
        "task": "music",
        "run": str(tmp_path / "run"),
        "model": {"family": "gru", "width": 32, "layers": 1, "input_dropout": 0},
        "batch": {"rows": 4},
        "train": {"lr": 1e-2, "epochs": 12},
        "threads": 1,
    }
    memory = {"train": [trill] * 80, "valid": [trill], "test": [trill] * 3}
    run, _ = start(parse_settings(settings), memory, quiet=True)
    found = run.evaluate().measurements
    assert found["frame_nll"].value < 0.3
    assert found["accuracy"].value > 0.99
    answers = list(run.predictions([[[60], [62, 64]], "", "[[60], [62, 64], [60]]"]))
    assert [answer.text for answer in answers] == ["[60]", "", "[62, 64]"]
    assert json.loads(answers[0].text) == answers[0].plain["keys"]
    assert answers[0].plain["probabilities"]["60"] > 0.5
    assert len(answers[0].plain["probabilities"]) == 88
