"""Models: embedding + families + head, in four shapes, built from fields and the model section."""

from weft.models.budget import count_parameters, solve_budget
from weft.models.build import build_causal, build_forecast, build_label, build_pooled, build_translation
from weft.models.config import Common, ModelConfig, Side, parse_count, parse_model
from weft.models.forecasting import ForecastModel
from weft.models.heads import Head
from weft.models.shapes import CausalModel, LabelModel, PooledModel, TranslationModel
from weft.models.steppers import PromptStepper, TranslationStepper, log_probabilities

__all__ = [
    "CausalModel",
    "Common",
    "ForecastModel",
    "Head",
    "LabelModel",
    "ModelConfig",
    "PooledModel",
    "PromptStepper",
    "Side",
    "TranslationModel",
    "TranslationStepper",
    "build_causal",
    "build_forecast",
    "build_label",
    "build_pooled",
    "build_translation",
    "count_parameters",
    "log_probabilities",
    "parse_count",
    "parse_model",
    "solve_budget",
]
