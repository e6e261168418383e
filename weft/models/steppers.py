"""Models as decoders see them: start, step, select."""

from __future__ import annotations

from typing import NamedTuple

import torch

from weft.core.sequences import Sequences
from weft.core.shapes import Float, Int, Tensor
from weft.core.state import State, select_rows
from weft.models.shapes import CausalModel, TranslationModel
from weft.nn.memory import SourceMemory


class TranslationState(NamedTuple):
    """Lanes of decoder state, and the source rows they look at."""

    lanes: State
    memory: SourceMemory


class TranslationStepper:
    """Drive a translation model. The memory is not copied for the lanes of one source row."""

    def __init__(self, model: TranslationModel):
        self.model = model

    def start(self, source: Sequences) -> TranslationState:
        memory = self.model.encode(source)
        return TranslationState(self.model.backbone.init_state(source.batch_size, memory=memory), memory)

    def step(
        self, tokens: Int[Tensor, "B"], state: TranslationState
    ) -> tuple[Float[Tensor, "B V"], TranslationState]:
        y, lanes = self.model.step(tokens, state.lanes, state.memory)
        return log_probabilities(self.model.head(y)), TranslationState(lanes, state.memory)

    def select(self, state: TranslationState, rows: Int[Tensor, "R"]) -> TranslationState:
        lanes = _size(state.lanes) // state.memory.summary.shape[0]
        owners = (rows // lanes).cpu()  # the one wait for the device; what follows is read here
        sources, counts = torch.unique_consecutive(owners, return_counts=True)
        memory = state.memory
        if len(counts) and int(counts.max()) != int(counts.min()):
            raise ValueError(f"Lanes are selected in equal blocks a source row, not in {counts.tolist()}.")
        if len(sources) != memory.summary.shape[0] or bool((sources[1:] < sources[:-1]).any()):
            memory = select_rows(memory, sources.to(rows.device))
        return TranslationState(select_rows(state.lanes, rows), memory)


class PromptState(NamedTuple):
    """Lanes that have read their prompts but for the last token, `first`, which the first step reads."""

    lanes: State
    first: Int[Tensor, "B"] | None


class PromptStepper:
    """Drive a language model behind prompts (B, T), which it reads in one pass after `start_id`.

    The first step answers to the prompt, whatever token it is given. Ids in `never` are not said.
    """

    def __init__(self, model: CausalModel, start_id: int, never: tuple[int, ...] = ()):
        self.model, self.start_id, self.never = model, start_id, list(never)

    def start(self, source: Sequences) -> PromptState:
        begin = source.data.new_full((source.batch_size, 1), self.start_id)
        told = Sequences(torch.cat([begin, source.data], dim=1), source.lengths + 1)
        lanes = self.model(Sequences(told.data[:, :-1], source.lengths))[1]
        return PromptState(lanes, told.last())

    def step(self, tokens: Int[Tensor, "B"], state: PromptState) -> tuple[Float[Tensor, "B V"], PromptState]:
        y, lanes = self.model.step(tokens if state.first is None else state.first, state.lanes)
        log_probs = log_probabilities(self.model.head(y))
        log_probs[:, self.never] = -torch.inf
        return log_probs, PromptState(lanes, None)

    def select(self, state: PromptState, rows: Int[Tensor, "R"]) -> PromptState:
        return select_rows(state, rows)


def log_probabilities(logits: Float[Tensor, "*B V"]) -> Float[Tensor, "*B V"]:
    """Return log softmax, in float32 at least."""
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.log_softmax(logits, dim=-1, dtype=wide)


def _size(state: State) -> int:
    """Return the number of lanes of a state."""
    while not isinstance(state, torch.Tensor):
        state = next(child for child in state if child is not None)
    return state.shape[0]
