"""What is asked of a model. `tasks` is the registry, `build` the one builder."""

from weft.tasks.building import build
from weft.tasks.classify import Classify
from weft.tasks.forecast import Forecast
from weft.tasks.language import Language
from weft.tasks.music import Music
from weft.tasks.protocol import BatchConfig, Loss, Prediction, Task, tasks
from weft.tasks.regress import Regress
from weft.tasks.sources import DataConfig, Parts, open_parts
from weft.tasks.tag import Tag
from weft.tasks.translate import Translate

__all__ = [
    "BatchConfig",
    "Classify",
    "DataConfig",
    "Forecast",
    "Language",
    "Loss",
    "Music",
    "Parts",
    "Prediction",
    "Regress",
    "Tag",
    "Task",
    "Translate",
    "build",
    "open_parts",
    "tasks",
]
