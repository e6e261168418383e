"""The families: rnn, lstm, gru, tcn, transformer. Each keeps the protocols of `weft.core.protocols`."""

from weft.nn.families import gru, lstm, rnn, tcn, transformer  # noqa: F401 (each registers itself)
from weft.nn.families.family import AttentionSpec, Family, families

__all__ = ["AttentionSpec", "Family", "families"]
