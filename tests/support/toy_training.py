"""A toy to train: next-symbol prediction with a carried state, dropout, shuffling, tied weights, a buffer."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import torch
from torch import nn

from weft.core.rng import numpy_stream
from weft.core.sequences import Sequences
from weft.runs import RunFolder
from weft.training import Outcome, TrainConfig, train

SYMBOLS, WIDTH, ROWS, WINDOW = 11, 8, 3, 5


class ToyState(NamedTuple):
    hidden: torch.Tensor  # (B, U)


@dataclass(frozen=True)
class ToyLoss:
    total: torch.Tensor
    count: torch.Tensor
    state: Any


class ToyModel(nn.Module):
    def __init__(self, dropout: float = 0.2):
        super().__init__()
        self.embedding = nn.Embedding(SYMBOLS, WIDTH)
        self.core = nn.GRU(WIDTH, WIDTH, batch_first=True)
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(WIDTH, SYMBOLS)
        self.head.weight = self.embedding.weight
        self.register_buffer("seen", torch.zeros((), dtype=torch.int64))

    def forward(self, x, state):
        if self.training:
            self.seen += 1
        hidden = None if state is None else state.hidden.unsqueeze(0).contiguous()
        output, last = self.core(self.embedding(x), hidden)
        return self.head(self.dropout(output)), ToyState(last.squeeze(0))


class ToyFeed:
    """Counts upwards by a stride a row; each epoch starts its rows elsewhere, in another order."""

    def __init__(self, batches: int = 7, carries: bool = True, seed: int = 0):
        self.carries = carries
        self.count, self.seed = batches, seed

    def batches(self, epoch: int) -> int:
        return self.count

    def batch(self, epoch: int, position: int):
        starts = numpy_stream(self.seed, "epoch", epoch).permutation(SYMBOLS)[:ROWS]
        steps = torch.arange(position * WINDOW, (position + 1) * WINDOW + 1)
        text = (torch.from_numpy(starts).unsqueeze(1) + steps * 3) % SYMBOLS
        lengths = torch.tensor([WINDOW, WINDOW, WINDOW - position % 3])
        return {"input": Sequences(text[:, :-1], lengths), "target": Sequences(text[:, 1:], lengths)}

    def tokens(self, batch) -> int:
        return int(batch["target"].lengths.sum())


class ToyTask:
    better: ClassVar[dict[str, str]] = {"loss": "lower", "accuracy": "higher"}

    def loss(self, model, batch, state, smoothing):
        logits, state = model(batch["input"].data, state)
        keep = batch["target"].mask()
        total = nn.functional.cross_entropy(
            logits[keep].float(), batch["target"].data[keep], reduction="sum", label_smoothing=smoothing
        )
        return ToyLoss(total, keep.sum(), state)

    def validate(self, model, data):
        torch.rand(3)  # a validation that draws must not change training
        total, right, count = 0.0, 0, 0
        for batch in data:
            logits, _ = model(batch["input"].data, None)
            total += float(nn.functional.cross_entropy(logits.flatten(0, 1), batch["target"].data.flatten()))
            right += int((logits.argmax(-1) == batch["target"].data).sum())
            count += batch["target"].data.numel()
        return {"loss": total / len(data), "accuracy": right / count}


CONFIG = TrainConfig(
    lr=0.02,
    schedule="cosine",
    warmup=5,
    clip=0.5,
    label_smoothing=0.1,
    accumulate=2,
    ema=0.9,
    steps=40,
    validate_every=6,
    checkpoint_every=5,
    log_every=4,
    weight_decay=0.01,
    optimizer="adamw",
)


def make_model(seed: int = 1) -> ToyModel:
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return ToyModel()


def validation() -> list[Any]:
    feed = ToyFeed(seed=99)
    return [feed.batch(0, position) for position in range(2)]


def make_folder(path: Path) -> RunFolder:
    folder = RunFolder.create(path)
    folder.write_config({"task": "toy"})
    folder.place("tokenizer.json", lambda temporary: temporary.write_text("{}"))
    return folder


def train_toy(
    folder: RunFolder,
    config: TrainConfig = CONFIG,
    resume: bool = False,
    feed: Any = None,
    task: Any = None,
    valid: Any = "default",
    **options: Any,
) -> Outcome:
    """Train the toy in `folder` from weights that depend on nothing but their seed."""
    options.setdefault("quiet", True)
    torch.seed()  # what ran before must not matter
    data = validation() if valid == "default" else valid
    feed, task = feed or ToyFeed(), task or ToyTask()
    return train(make_model(), task, feed, data, config, folder, seed=5, resume=resume, **options)


def remains(folder: RunFolder) -> dict[str, Any]:
    """Return all a training leaves that must not depend on how often it was stopped."""
    last, best = folder.checkpoint("last"), folder.checkpoint("best")
    state = last.state()
    state.pop("clock")
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in folder.metrics.read()]
    return {
        "names": (last.name, best.name),
        "last": plain(last.weights()),
        "best": plain(best.weights()),
        "state": plain(state),
        "rows": rows,
    }


def plain(tree: Any) -> Any:
    """Return a tree with every tensor as its type, shape and bytes, so that == means bit for bit."""
    if isinstance(tree, torch.Tensor):
        return (
            str(tree.dtype),
            tuple(tree.shape),
            tree.contiguous().reshape(-1).view(torch.uint8).numpy().tobytes(),
        )
    if isinstance(tree, dict):
        return {key: plain(value) for key, value in tree.items()}
    return [plain(value) for value in tree] if isinstance(tree, list) else tree
