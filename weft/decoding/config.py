"""How to search: section `decoding`."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.config import option
from weft.core.errors import ConfigError

METHODS = ("greedy", "beam", "sample")


@dataclass(frozen=True)
class DecodingConfig:
    """How the next tokens are chosen."""

    method: str = option("greedy", "how the next token is chosen", choices=METHODS)
    beam: int = option(5, "open hypotheses a row (method beam); 1 is greedy search", low=1, high=10_000)
    length_penalty: float = option(0.0, "α in score = log p / ((5 + length) / 6)^α", low=0.0)
    nbest: int = option(1, "hypotheses returned a row (method beam)", low=1)
    min_length: int = option(0, "fewest tokens before the end is allowed", low=0)
    max_length: int | None = option(None, "most tokens; null: max_ratio · source length + max_extra", low=0)
    max_ratio: float = option(2.0, "most tokens for each source token", low=0.0)
    max_extra: int = option(20, "tokens allowed on top of max_ratio", low=0)
    no_repeat_ngram: int = option(0, "forbid a run of this many tokens to come twice; 0: allow", low=0)
    temperature: float = option(
        1.0, "log-probabilities are divided by it (method sample); 0: greedy", low=0.0
    )
    top_k: int = option(0, "sample among the k most likely tokens; 0: all", low=0)
    top_p: float = option(
        1.0, "sample among the fewest tokens that hold this much probability", low=0.0, high=1.0
    )
    min_p: float = option(
        0.0, "sample among tokens at least this likely, next to the likeliest", low=0.0, high=1.0
    )
    seed: int = option(0, "the seed of method sample", low=0)
    samples: int = option(1, "samples a row (method sample)", low=1)
    empty: bool = option(False, "begin a text where the prompt is empty, too (language)")

    def __post_init__(self) -> None:
        """Refuse values that contradict each other."""
        if self.method == "beam" and self.nbest > self.beam:
            raise ConfigError(
                f"`decoding.nbest` must be at most `decoding.beam` ({self.beam}), but is {self.nbest}. "
                f"Try decoding.beam={self.nbest}."
            )
        if self.max_length is not None and self.min_length > self.max_length:
            raise ConfigError(
                f"`decoding.min_length` must be at most `decoding.max_length` ({self.max_length}), "
                f"but is {self.min_length}. Try decoding.max_length={self.min_length}."
            )
