"""How likely the model finds outputs that somebody else wrote."""

from __future__ import annotations

from typing import Any

import torch
from torch.nn import functional as F

from weft.core.protocols import Stepper
from weft.core.sequences import Sequences
from weft.core.shapes import Int, Tensor
from weft.decoding.plan import device_of


@torch.no_grad()
def score(stepper: Stepper, source: Any, targets: Sequences, bos: int, eos: int) -> Sequences:
    """Return log p(y_t | y_<t) of every target token and of the eos after it: (B, T + 1), padded with 0.

    `targets` hold neither bos nor eos. Rows leave the batch at their end; the lengths are known, so
    no step waits for the device.
    """
    ends = (targets.lengths + 1).cpu()
    state = stepper.start(source)
    wanted = _with_end(targets, eos).to(device_of(state))
    given = F.pad(wanted, (1, 0), value=bos)
    scores = torch.zeros(wanted.shape, device=wanted.device)
    rows = torch.arange(len(ends))
    lanes = rows.to(wanted.device)
    for step in range(int(ends.max()) if len(ends) else 0):
        kept = (ends[rows] > step).nonzero().squeeze(1)
        if len(kept) < len(rows):
            rows, state = rows[kept], stepper.select(state, kept.to(wanted.device))
            lanes = rows.to(wanted.device)
        log_probs, state = stepper.step(given[lanes, step], state)
        scores[lanes, step] = log_probs.float().gather(1, wanted[lanes, step].unsqueeze(1)).squeeze(1)
    return Sequences(scores, ends.to(wanted.device))


def _with_end(targets: Sequences, eos: int) -> Int[Tensor, "B T"]:
    """Write eos after each row's last token."""
    return F.pad(targets.data.long(), (0, 1)).scatter(1, targets.lengths.unsqueeze(1), eos)
