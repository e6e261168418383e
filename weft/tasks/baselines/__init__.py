"""What any model must beat: one file a baseline."""

from weft.tasks.baselines.counts import ridge_on_counts
from weft.tasks.baselines.frequent_tag import frequent_tags
from weft.tasks.baselines.key_frequency import key_frequency_nll
from weft.tasks.baselines.linear import LinearModel, linear_forecast, ridge, tell_linear
from weft.tasks.baselines.logistic import Grams, logistic_on_grams
from weft.tasks.baselines.majority import majority_label, majority_score
from weft.tasks.baselines.nearest import nearest_targets
from weft.tasks.baselines.seasonal import seasonal_naive
from weft.tasks.baselines.unigram import unigram_bits

__all__ = [
    "Grams",
    "LinearModel",
    "frequent_tags",
    "key_frequency_nll",
    "linear_forecast",
    "logistic_on_grams",
    "majority_label",
    "majority_score",
    "nearest_targets",
    "ridge",
    "ridge_on_counts",
    "seasonal_naive",
    "tell_linear",
    "unigram_bits",
]
