"""Polyphonic music, one frame of 88 keys after another (S6)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.core.errors import DataError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor
from weft.core.state import State
from weft.data import Dataset, Feed
from weft.decoding import DecodingConfig
from weft.metrics import Evaluation, Measurement, frame_nll, metric_of_sums
from weft.metrics.measure import columns, ratio
from weft.models import CausalModel, ModelConfig, build_causal
from weft.tasks.protocol import BatchConfig, Loss, Prediction, tasks
from weft.tasks.running import answer, bucket_feed, each_batch, encode_one, evaluating, in_order

LOWEST = 21  # MIDI number of a piano's first key


@dataclass(frozen=True)
class MusicConfig:
    """Section `task` of music."""


@tasks.register("music")
class Music:
    """Predict which keys sound in the next frame, each key by itself.

    NLL of a frame = -sum over keys of y log p + (1 - y) log(1 - p), in nats.
    """

    name = "music"
    Config = MusicConfig
    sides = ("decoder",)
    defaults: dict[str, dict[str, Any]] = {}
    better = {"loss": "lower", "accuracy": "higher"}

    def __init__(self, config: MusicConfig, fields: dict[str, Any], batch: BatchConfig):
        self.config, self.batch = config, batch
        self.frames = fields["frames"]

    @staticmethod
    def schema(config: MusicConfig) -> dict[str, str]:
        return {"frames": "frames"}

    def build(self, config: ModelConfig) -> CausalModel:
        return build_causal(self.frames, self.frames.width, config)

    def feed(self, data: Dataset, seed: int) -> Feed:
        return bucket_feed(_with_targets(data), self.batch, seed, "frames")

    def loss(self, model: CausalModel, batch: Any, state: State, smoothing: float) -> Loss:
        inputs, wanted = known_and_next(batch["frames"])
        logits = model.head(model(inputs)[0].data)
        nll = keys_losses(logits, wanted.data * (1 - smoothing) + smoothing / 2)
        return Loss(wanted.with_data(nll).fill(0).data.sum(), wanted.lengths.sum())

    def validate(self, model: CausalModel, data: Dataset) -> dict[str, float]:
        nll, frames, hits, united = self._score(model, _with_targets(data)).sum(0)
        return {"loss": nll / frames, "accuracy": hits / max(united, 1)}

    def _score(self, model: CausalModel, data: Dataset) -> np.ndarray:
        """Return of each piece (n, 4): nll, frames, keys told rightly, keys told or sounding."""
        with evaluating(model):
            parts = []
            for places, batch in each_batch(model, data, self.batch, "frames"):
                inputs, wanted = known_and_next(batch["frames"])
                stats = piece_sums(model.head(model(inputs)[0].data), wanted)
                parts.append((places, list(stats.double().cpu().numpy())))
        return np.stack(in_order(len(data), parts))

    def evaluate(
        self, model: CausalModel, data: Dataset, rows: Iterable[Any], decoding: DecodingConfig
    ) -> Evaluation:
        data = _with_targets(data)
        nll, frames, hits, united = self._score(model, data).T
        measured: dict[str, Measurement] = {
            "frame_nll": frame_nll(nll, frames),
            "accuracy": Measurement(
                metric_of_sums("accuracy", "higher", ratio, share=True), columns(hits, united)
            ),
        }
        return Evaluation(measured, data.lengths("frames"), unit="frames")

    def predict(
        self, model: CausalModel, inputs: Iterable[Any], decoding: DecodingConfig, first: int = 0
    ) -> Iterator[Prediction]:
        """Tell the keys of the frame after each piece, as MIDI numbers."""

        def run(x: Sequences) -> list[Tensor]:
            return list(torch.sigmoid(model.head(model(x)[0].last()).float()).cpu())

        pieces = (read_piece(raw, number, self.frames.width) for number, raw in enumerate(inputs, 1))
        with evaluating(model) as device:
            for shares in answer(pieces, self.frames, self.batch, device, run):
                yield Prediction("") if shares is None else _prediction(shares)

    def given(self, model: CausalModel, raw: Any, device: torch.device) -> tuple[Sequences, list[str]]:
        """Return the frames of one raw piece, called by their numbers."""
        x = encode_one(self.frames, read_piece(raw, 1, self.frames.width), device)
        return x, [str(frame + 1) for frame in range(x.max_length)]


def known_and_next(frames: Sequences) -> tuple[Sequences, Sequences]:
    """Return all frames but the last of each piece, and all but the first."""
    lengths = (frames.lengths - 1).clamp(min=0)
    return Sequences(frames.data[:, :-1], lengths), Sequences(frames.data[:, 1:], lengths)


def keys_losses(logits: Float[Tensor, "B T K"], wanted: Tensor) -> Float[Tensor, "B T"]:
    """Sum the binary cross-entropy over the keys of each frame."""
    cross = torch.nn.functional.binary_cross_entropy_with_logits
    return cross(logits.float(), wanted.float(), reduction="none").sum(2)


def piece_sums(logits: Float[Tensor, "B T K"], wanted: Sequences) -> Float[Tensor, "B 4"]:
    """Sum over each piece: nll, frames, keys told rightly, keys told or sounding (told: p > .5)."""
    told, sounding = logits > 0, wanted.data > 0
    counts = [(told & sounding).sum(2), (told | sounding).sum(2)]
    nll = keys_losses(logits, wanted.data)
    each = torch.stack([nll, torch.ones_like(nll), *counts], dim=2)  # (B, T, 4)
    return wanted.with_data(each).fill(0).data.sum(1)


def read_piece(raw: Any, number: int, width: int) -> np.ndarray:
    """Read frames (T, width) from JSON text or lists: 0 or 1 a key, or the MIDI numbers of what sounds."""
    if isinstance(raw, np.ndarray):
        return raw
    if isinstance(raw, str):
        raw = _from_json(raw, number)
    if not isinstance(raw, list | tuple) or not all(isinstance(frame, list | tuple) for frame in raw):
        raise DataError(
            f"Input {number} must be a list of frames, but is {str(raw)[:40]!r}. Try [[60, 64], [62]]."
        )
    piece = np.zeros((len(raw), width), np.uint8)
    for row, frame in zip(piece, raw, strict=True):
        row[_keys(frame, number, width)] = 1
    return piece


def _from_json(text: str, number: int) -> Any:
    try:
        return json.loads(text) if text.strip() else []
    except (ValueError, RecursionError) as error:
        raise DataError(f"Input {number} is not JSON ({error}). Try [[60, 64], [62]].") from None


def _keys(frame: Any, number: int, width: int) -> list[int]:
    """Return the places of the keys that sound."""
    if len(frame) == width and all(key in (0, 1) for key in frame):
        return [place for place, on in enumerate(frame) if on]
    highest = LOWEST + width - 1
    for key in frame:
        if isinstance(key, bool) or not isinstance(key, int) or not LOWEST <= key <= highest:
            raise DataError(
                f"Input {number}: a frame holds MIDI numbers from {LOWEST} to {highest}, or {width} zeros "
                f"and ones, but one holds {key!r}."
            )
    return [key - LOWEST for key in frame]


def _prediction(shares: Float[Tensor, "K"]) -> Prediction:
    keys = [LOWEST + place for place in (shares > 0.5).nonzero().flatten().tolist()]
    probabilities = {str(LOWEST + place): share for place, share in enumerate(shares.tolist())}
    return Prediction(json.dumps(keys), {"keys": keys, "probabilities": probabilities})


def _with_targets(data: Dataset) -> Dataset:
    """Leave out pieces of one frame: nothing follows it."""
    places = np.flatnonzero(data.lengths("frames") > 1)
    if not len(places):
        raise DataError("No piece has a frame to predict: each needs at least 2 frames.")
    return data if len(places) == len(data) else data.select(places)
