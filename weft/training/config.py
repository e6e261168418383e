"""The section `train` of a configuration."""

from __future__ import annotations

from dataclasses import dataclass

from weft.core.config import option
from weft.core.errors import ConfigError

DEFAULT_EPOCHS = 10  # where the configuration sets no limit of any kind,
DEFAULT_STEPS = 300  # or as many as make these steps: ten epochs of a small file teach little


@dataclass(frozen=True)
class TrainConfig:
    """How weights are changed, for how long, and what is kept."""

    optimizer: str = option("adam", "rule of the update", choices=("adam", "adamw", "sgd", "rmsprop"))
    lr: float = option(1e-3, "peak learning rate", low=0.0)
    betas: tuple[float, ...] = option((0.9, 0.999), "decay of Adam's two moments", low=0.0, high=1.0)
    eps: float = option(1e-8, "term added to the denominator of Adam and RMSprop", low=0.0)
    weight_decay: float = option(0.0, "pull of matrices (never biases, gains) towards zero", low=0.0)
    momentum: float = option(0.0, "momentum of SGD and RMSprop", low=0.0, high=1.0)

    schedule: str = option(
        "constant",
        "how the rate moves after warm-up",
        choices=("constant", "inverse_sqrt", "cosine", "plateau"),
    )
    warmup: int = option(0, "steps over which the rate rises linearly to `lr`", low=0)
    plateau_factor: float = option(0.5, "what plateau multiplies the rate by", low=0.0, high=1.0)
    plateau_patience: int = option(2, "validations without a new best before plateau acts", low=1)

    clip: float = option(1.0, "largest global norm of the gradient; 0 leaves it alone", low=0.0)
    label_smoothing: float = option(0.0, "share of the target spread over all classes", low=0.0, high=1.0)
    accumulate: int = option(1, "batches whose gradients make one step", low=1)
    precision: str = option("fp32", "arithmetic of the forward pass", choices=("fp32", "bf16", "fp16"))
    ema: float = option(0.0, "decay of the moving average of weights; 0 keeps none", low=0.0, high=1.0)

    steps: int | None = option(None, "stop after so many optimizer steps", low=1)
    epochs: int | None = option(
        None, "stop after so many epochs (where no limit is set: 10, or what 300 steps take)", low=1
    )
    tokens: int | None = option(None, "stop after so many target elements", low=1)
    minutes: float | None = option(None, "stop after so many minutes of training", low=0.0)
    patience: int = option(0, "stop after so many validations without a new best; 0 never", low=0)
    metric: str = option("loss", "the validation metric that decides what is best")

    validate_every: int = option(0, "steps between validations; 0 at the end of every epoch", low=0)
    checkpoint_every: int = option(500, "steps between checkpoints; 0 at the end of every epoch", low=0)
    log_every: int = option(50, "steps between rows of metrics.jsonl; the first step has one, too", low=1)
    keep: int = option(3, "newest checkpoints kept, beside the best", low=1)
    average: int = option(0, "average the weights of so many last checkpoints at the end", low=0)
    tensorboard: bool = option(False, "write TensorBoard files into the run's folder")


def check(config: TrainConfig, validated: bool) -> None:
    """Refuse what cannot be done together."""
    if len(config.betas) != 2:
        raise ConfigError(f"`train.betas` must be two numbers, but is {config.betas}. Try [0.9, 0.999].")
    endless = (config.tokens or config.minutes) and not (config.steps or config.epochs)
    if config.schedule == "cosine" and endless:
        raise ConfigError(
            "`train.schedule` cosine must know its end, but neither `train.steps` nor `train.epochs` is set. "
            "Set one of them."
        )
    if config.schedule == "inverse_sqrt" and not config.warmup:
        raise ConfigError("`train.schedule` inverse_sqrt needs `train.warmup`, but it is 0. Try 4000.")
    if config.minutes is not None and config.minutes <= 0:
        raise ConfigError(f"`train.minutes` must be above 0, but is {config.minutes:g}. Try 10.")
    if not validated and (config.patience or config.schedule == "plateau"):
        key = "patience" if config.patience else "schedule"
        raise ConfigError(f"`train.{key}` needs validation data, but there is none. Set `data.valid`.")


def epochs_limit(config: TrainConfig, steps: int) -> int | None:
    """Return the limit in epochs of `steps` each: as set, or the default where nothing is limited."""
    if config.epochs or config.steps or config.tokens or config.minutes:
        return config.epochs
    return max(DEFAULT_EPOCHS, -(-DEFAULT_STEPS // max(steps, 1)))
