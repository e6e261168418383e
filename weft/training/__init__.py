"""Changing a model: the loop, and the parts it calls by name."""

from weft.training.config import TrainConfig, check
from weft.training.health import NonFinite
from weft.training.loop import Outcome, train
from weft.training.optimizers import build_optimizer

__all__ = ["NonFinite", "Outcome", "TrainConfig", "build_optimizer", "check", "train"]
