"""Tensor functions. Under each stands `<op>_reference`: the lecture's equation, which defines it."""

from weft.ops.attention import attend, attend_reference, attention_weights, masked_softmax
from weft.ops.backward import gru_step_backward, lstm_step_backward, rnn_step_backward
from weft.ops.blocks import (
    NormedKernel,
    can_fuse_blocks,
    residual_blocks,
    residual_blocks_reference,
)
from weft.ops.convolution import causal_conv, causal_conv_reference
from weft.ops.gru import gru, gru_reference, gru_step
from weft.ops.layer import recurrent_layer
from weft.ops.loss import cross_entropy, cross_entropy_reference
from weft.ops.lstm import lstm, lstm_gates, lstm_reference, lstm_step
from weft.ops.masks import position_mask
from weft.ops.positions import plain_index, rotate, sinusoid
from weft.ops.rnn import rnn, rnn_reference, rnn_step
from weft.ops.scores import SCORES, ScoreParams
from weft.ops.weights import RecurrentWeights

__all__ = [
    "SCORES",
    "NormedKernel",
    "RecurrentWeights",
    "ScoreParams",
    "attend",
    "attend_reference",
    "attention_weights",
    "can_fuse_blocks",
    "causal_conv",
    "causal_conv_reference",
    "cross_entropy",
    "cross_entropy_reference",
    "gru",
    "gru_reference",
    "gru_step",
    "gru_step_backward",
    "lstm",
    "lstm_gates",
    "lstm_reference",
    "lstm_step",
    "lstm_step_backward",
    "masked_softmax",
    "plain_index",
    "position_mask",
    "recurrent_layer",
    "residual_blocks",
    "residual_blocks_reference",
    "rnn",
    "rnn_reference",
    "rnn_step",
    "rnn_step_backward",
    "rotate",
    "sinusoid",
]
