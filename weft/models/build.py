"""Build a model of one of the four shapes from fields and the model section."""

from __future__ import annotations

from typing import Any

from weft.core.errors import ConfigError
from weft.models.config import ModelConfig
from weft.models.forecasting import ForecastModel
from weft.models.heads import Head
from weft.models.inputs import TokenInput, VectorInput, make_input
from weft.models.shapes import CausalModel, LabelModel, PooledModel, TranslationModel
from weft.nn.families import AttentionSpec, families


def build_encoder(config: ModelConfig) -> Any:
    """Build the encoder's side."""
    side = config.sides["encoder"]
    return families[side.family].encoder(config.common.width, side.options, side.bidirectional)


def build_backbone(config: ModelConfig, attention: AttentionSpec | None) -> Any:
    """Build the decoder's side."""
    side = config.sides["decoder"]
    return families[side.family].backbone(config.common.width, side.options, attention)


def attention_spec(config: ModelConfig) -> AttentionSpec:
    """Return how the decoder looks at its source."""
    common, side = config.common, config.sides["decoder"]
    heads = getattr(side.options, "heads", common.attention_heads)
    kind = common.attention
    if kind == "auto":
        kind = "multihead" if side.family == "transformer" else "additive"
    return AttentionSpec(kind, heads, common.attention_values)


def build_causal(field: Any, outputs: int, config: ModelConfig) -> CausalModel:
    """Build a model that predicts the next element of a field."""
    common = config.common
    entry = make_input(field, common.width, common)
    table = entry.table if common.tied and isinstance(entry, TokenInput) else None
    head = Head(common.width, outputs, common.output_dropout, table)
    return CausalModel(entry, build_backbone(config, None), head)


def build_label(field: Any, outputs: int, config: ModelConfig) -> LabelModel:
    """Build a model with one output an element."""
    common = config.common
    head = Head(common.width, outputs, common.output_dropout)
    return LabelModel(make_input(field, common.width, common), build_encoder(config), head)


def build_pooled(field: Any, outputs: int, config: ModelConfig) -> PooledModel:
    """Build a model with one output a sequence."""
    common = config.common
    head = Head(common.width, outputs, common.output_dropout)
    return PooledModel(make_input(field, common.width, common), build_encoder(config), head, common.pooling)


def build_forecast(
    field: Any,
    history: int,
    horizon: int,
    config: ModelConfig,
    *,
    separate: bool = False,
    normalise: str = "last",
    linear: bool = True,
) -> ForecastModel:
    """Build a model that tells `horizon` steps of a series from the `history` before them."""
    common = config.common
    if history % common.patch:
        raise ConfigError(
            f"`model.patch` must divide `task.history` ({history}), but is {common.patch}. "
            f"Try {max(n for n in range(1, common.patch) if history % n == 0)}."
        )
    channels = 1 if separate else field.width
    entry = VectorInput(common.patch * channels, common.width, common.input_dropout)
    head = Head(common.width, horizon * channels, common.output_dropout)
    network = PooledModel(entry, build_encoder(config), head, common.pooling)
    return ForecastModel(network, history, horizon, common.patch, separate, normalise, linear)


def build_translation(source: Any, target: Any, config: ModelConfig) -> TranslationModel:
    """Build an encoder-decoder; a vocabulary that both sides share has one table."""
    common, spec = config.common, attention_spec(config)
    source_input = make_input(source, common.width, common)
    target_input = (
        source_input if source is target else TokenInput(target.size, common.width, common.input_dropout)
    )
    table = target_input.table if common.tied else None
    head = Head(common.width, target.size, common.output_dropout, table)
    backbone = build_backbone(config, spec)
    return TranslationModel(
        source_input, build_encoder(config), target_input, backbone, head, common.width, spec.kind != "none"
    )
