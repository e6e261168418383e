"""What a model did with one input: everything tapped, and where it looked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from weft.core.errors import InputError
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Tensor
from weft.core.taps import Trace, listen
from weft.data import BOS
from weft.decoding import DecodingConfig
from weft.tasks.running import encode_one

KINDS = ("cross_attention", "self_attention")  # what `attention` shows, the first that was tapped


@dataclass(frozen=True, eq=False)
class RunTrace:
    """What was tapped while a model read `source` (and wrote `target`): name -> tensors."""

    trace: Trace
    source: Sequence[str]
    target: Sequence[str]

    def names(self) -> list[str]:
        """Return the names of what was tapped."""
        return self.trace.names()

    def __getitem__(self, name: str) -> list[Tensor]:
        return self.trace[name]

    def attends(self, kind: str) -> bool:
        """Tell whether attention of this kind was tapped."""
        return any(name.endswith(kind) for name in self.names())

    def attention(self) -> list[Float[np.ndarray, "N T S"]]:
        """Return the attention weights of each layer: heads, target elements, source elements."""
        kind = next(filter(self.attends, KINDS), None)
        if kind is None:
            raise InputError("This model has no attention to look at. Try model.attention=additive.")
        layers = [self.trace[name] for name in self.names() if name.endswith(kind)]
        size = (len(self.target), len(self.source))
        return [join_steps(steps)[:, : size[0], : size[1]] for steps in layers]

    def weights(self, layer: int | None = None, head: int | None = None) -> Float[np.ndarray, "T S"]:
        """Return one table of weights: of a layer and a head, or the mean over all that are not chosen."""
        layers = self.attention()
        chosen = layers if layer is None else [_choose(layers, layer, "layer")]
        heads = [table if head is None else _choose(table, head, "head")[None] for table in chosen]
        return np.concatenate(heads).mean(0)

    def plot(self, layer: int | None = None, head: int | None = None) -> Any:
        """Draw the weights as a heat map; return matplotlib's figure."""
        from weft.reporting import alignment

        return alignment(self.weights(layer, head), self.source, self.target)


def join_steps(steps: Sequence[Float[Tensor, "1 N t S"]]) -> Float[np.ndarray, "N T S"]:
    """Lay side by side what one attention gave, all steps at once or step by step."""
    return torch.cat(list(steps), dim=2)[0].float().cpu().numpy()


def _choose(items: Any, index: int, what: str) -> Any:
    if not -len(items) <= index < len(items):
        raise InputError(f"`{what}` must be from 0 to {len(items) - 1}, but is {index}.")
    return items[index]


def record(
    model: Any, task: Any, fields: Mapping[str, Any], source: Any, decoding: DecodingConfig
) -> RunTrace:
    """Listen while the model reads one raw input and, if it has two sides, rereads its own answer."""
    x, shown = _given(model, task, next(iter(fields.values())), source)
    if not shown:
        raise InputError("A trace needs an input of at least one element, but this one is empty.")
    if set(task.sides) != {"encoder", "decoder"}:
        return RunTrace(_listen(model, x), shown, shown)
    answer = task.search(model, x, decoding)[0][0].tokens
    y = x.data.new_tensor([[BOS, *answer]])
    return RunTrace(_listen(model, x, Sequences.full(y)), shown, fields["target"].tokens(answer))


def _given(model: Any, task: Any, field: Any, source: Any) -> tuple[Any, list[str]]:
    """Return what the model reads for one raw input, and how each element of it is shown."""
    device = next(model.parameters()).device
    if hasattr(task, "given"):
        return task.given(model, source, device)
    x = encode_one(field, source, device)
    return x, tokens(field, x)


def _listen(model: Any, *inputs: Any) -> Trace:
    training = model.training
    model.eval()
    try:
        with torch.no_grad(), listen() as trace:
            model(*inputs)
    finally:
        model.train(training)
    return trace


def tokens(field: Any, x: Sequences) -> list[str]:
    """Return how each element of an encoded input is shown."""
    array = x.data[0].cpu().numpy()
    if hasattr(field, "tokens"):
        return field.tokens(array)
    decoded = field.decode(array)
    return list(decoded) if isinstance(decoded, list) else [str(step + 1) for step in range(len(array))]
