"""The four shapes a model can have. Each is an input, an encoder and/or a backbone, and a head."""

from __future__ import annotations

import torch
from torch import nn

from weft.core.protocols import Backbone, Encoder
from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State
from weft.models.heads import Head
from weft.models.inputs import Input, TokenInput
from weft.nn.memory import SourceMemory, lane_summary


class CausalModel(nn.Module):
    """Predict what comes next at every step."""

    def __init__(self, entry: Input, backbone: Backbone, head: Head):
        super().__init__()
        self.input, self.backbone, self.head = entry, backbone, head

    def forward(self, x: Sequences, state: State | None = None) -> tuple[Sequences, State]:
        """Return the hidden outputs (B, T, D), for the head, and the state to go on with."""
        return self.backbone(self.input(x), state)

    def step(self, x_t: Tensor, state: State) -> tuple[Float[Tensor, "B D"], State]:
        """Read one element a row."""
        return self.backbone.step(self.input.embed(x_t), state)


class LabelModel(nn.Module):
    """One output for every element of a sequence."""

    def __init__(self, entry: Input, encoder: Encoder, head: Head):
        super().__init__()
        self.input, self.encoder, self.head = entry, encoder, head

    def forward(self, x: Sequences) -> Sequences:
        encoded = self.encoder(self.input(x))
        return encoded.with_data(self.head(encoded.data))


class PooledModel(nn.Module):
    """One output for a whole sequence."""

    def __init__(self, entry: Input, encoder: Encoder, head: Head, pooling: str):
        super().__init__()
        self.input, self.encoder, self.head, self.pooling = entry, encoder, head, pooling

    def forward(self, x: Sequences) -> Float[Tensor, "B V"]:
        return self.head(self.pool(self.encoder(self.input(x))))

    def pool(self, encoded: Sequences) -> Float[Tensor, "B D"]:
        """Return what the encoder makes of a whole sequence, or the mean or maximum over its elements."""
        if self.pooling == "mean" or (self.pooling == "max" and encoded.max_length == 0):
            return encoded.mean()
        if self.pooling == "max":
            lowest = torch.finfo(encoded.data.dtype).min
            top = encoded.fill(lowest).data.amax(1)
            return top.masked_fill((encoded.lengths == 0).unsqueeze(1), 0)
        return self.encoder.summarise(encoded)


class TranslationModel(nn.Module):
    """Encode a source; decode a target that looks at it.

    Without attention the source's summary s joins every decoder input: W [x; s].
    """

    def __init__(
        self,
        source_input: Input,
        encoder: Encoder,
        target_input: TokenInput,
        backbone: Backbone,
        head: Head,
        width: int,
        attends: bool,
    ):
        super().__init__()
        self.source_input, self.encoder = source_input, encoder
        self.target_input, self.backbone, self.head = target_input, backbone, head
        self.condition = None if attends else nn.Linear(2 * width, width)

    def encode(self, source: Sequences) -> SourceMemory:
        """Read the source and prepare what the decoder will ask of it."""
        encoded = self.encoder(self.source_input(source))
        return self.backbone.prepare(encoded, self.encoder.summarise(encoded))

    def decode(
        self, target: Sequences, memory: SourceMemory, state: State | None = None
    ) -> tuple[Sequences, State]:
        """Return the hidden outputs (B, T, D) for target ids that begin with BOS, and the state."""
        x = self.target_input(target)
        return self.backbone(x.with_data(self._conditioned(x.data, memory)), state, memory)

    def forward(self, source: Sequences, target: Sequences) -> Sequences:
        return self.decode(target, self.encode(source))[0]

    def step(
        self, tokens: Int[Tensor, "B"], state: State, memory: SourceMemory
    ) -> tuple[Float[Tensor, "B D"], State]:
        """Read one token a row."""
        x_t = self._conditioned(self.target_input.embed(tokens).unsqueeze(1), memory).squeeze(1)
        return self.backbone.step(x_t, state, memory)

    def _conditioned(self, x: Float[Tensor, "B T D"], memory: SourceMemory) -> Float[Tensor, "B T D"]:
        if self.condition is None:
            return x
        summary = lane_summary(memory, x.shape[0]).unsqueeze(1).expand(-1, x.shape[1], -1)
        return self.condition(torch.cat([x, summary], dim=2))
