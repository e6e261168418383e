"""Layers. `RNN`, `LSTM`, `GRU` and `MultiheadAttention` replace torch.nn's by changing one import."""

from weft.nn.attention import Attention, AttentionMemory, SourceReader
from weft.nn.dropout import Dropout
from weft.nn.memory import SourceMemory
from weft.nn.multihead import MultiheadAttention
from weft.nn.position import PositionEncoding
from weft.nn.recurrent import GRU, LSTM, RNN

__all__ = [
    "GRU",
    "LSTM",
    "RNN",
    "Attention",
    "AttentionMemory",
    "Dropout",
    "MultiheadAttention",
    "PositionEncoding",
    "SourceMemory",
    "SourceReader",
]
