"""Logistic regression on n-grams: which ones stand in a text, not where."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from weft.core.shapes import Float, Int, Tensor

Text = str | Sequence[str]  # or its words one by one


@dataclass(frozen=True)
class Grams:
    """What the model sees of a text: n-grams of 1 to `longest` words or characters, each once.

    n-grams seen in fewer than `least` training texts are left out. Of characters, both ends are marked.
    """

    unit: str = "word"  # or "char"
    longest: int = 2
    least: int = 1

    def of(self, text: Text) -> Iterator[tuple[str, ...]]:
        """Yield every n-gram of a text."""
        words = self.unit == "word"
        units = (text.split() if isinstance(text, str) else text) if words else ["\n", *text, "\n"]
        for size in range(1, self.longest + 1):
            yield from zip(*(units[start:] for start in range(size)), strict=False)


def logistic_on_grams(
    train: Sequence[Text],
    labels: Sequence[str],
    test: Sequence[Text],
    grams: Grams | None = None,
    penalty: float = 1e-6,
) -> list[str]:
    """Fit labels by the n-grams of training texts, and tell those of the test texts."""
    grams = grams or Grams()
    names = sorted(set(labels))
    wanted = np.array([names.index(label) for label in labels])
    columns = choose_grams(train, grams)
    weight, bias = fit_logistic(gram_matrix(train, grams, columns), wanted, len(names), penalty)
    logits = gram_matrix(test, grams, columns) @ weight + bias
    return [names[i] for i in logits.argmax(1).tolist()]


def choose_grams(texts: Sequence[Text], grams: Grams) -> dict[tuple[str, ...], int]:
    """Number the n-grams that stand in at least `least` texts."""
    counts = Counter(gram for text in texts for gram in set(grams.of(text)))
    return {gram: i for i, gram in enumerate(sorted(g for g, n in counts.items() if n >= grams.least))}


def gram_matrix(
    texts: Sequence[Text], grams: Grams, columns: dict[tuple[str, ...], int]
) -> Float[Tensor, "n p"]:
    """Return a sparse matrix: 1 / sqrt(n-grams of the text) where one stands, so that rows have norm 1."""
    rows = [sorted({columns[gram] for gram in grams.of(text) if gram in columns}) for text in texts]
    sizes = torch.tensor([len(row) for row in rows])
    lines = torch.arange(len(rows)).repeat_interleave(sizes)
    places = torch.tensor([place for row in rows for place in row], dtype=torch.int64)
    values = sizes.clamp(min=1).float().rsqrt()[lines]
    size = (len(texts), len(columns))
    return torch.sparse_coo_tensor(
        torch.stack([lines, places]), values, size, check_invariants=True
    ).coalesce()


def fit_logistic(
    x: Float[Tensor, "n p"], wanted: Int[np.ndarray, "n"], classes: int, penalty: float
) -> tuple[Float[Tensor, "p V"], Float[Tensor, "V"]]:
    """Minimise mean cross-entropy + penalty ||W||^2 by L-BFGS: convex, so chance has no part."""
    weight, bias = torch.zeros(x.shape[1], classes), torch.zeros(classes)
    target, transposed = torch.from_numpy(wanted), x.t().coalesce()
    optimizer = torch.optim.LBFGS([weight, bias], max_iter=200, line_search_fn="strong_wolfe")

    def closure() -> Tensor:
        logits = (x @ weight + bias).requires_grad_()
        loss = torch.nn.functional.cross_entropy(logits, target)
        (slope,) = torch.autograd.grad(loss, logits)
        weight.grad, bias.grad = transposed @ slope + 2 * penalty * weight, slope.sum(0)
        return loss.detach() + penalty * weight.square().sum()

    optimizer.step(closure)  # pyright: ignore[reportArgumentType]  # torch types it as a float, but takes tensors
    return weight, bias
