"""A number that is none stops training before it reaches the weights, and is traced."""

from dataclasses import replace

import pytest
import torch
from toy_training import CONFIG, ToyFeed, ToyLoss, ToyTask, make_folder, make_model, train_toy

from weft.training import NonFinite, train

PLAIN = replace(CONFIG, ema=0.0, log_every=1)


class BrokenFeed(ToyFeed):
    """Its batch 4 of epoch 2 says so."""

    def batch(self, epoch, position):
        marked = (epoch, position) == (1, 3)
        return {**super().batch(epoch, position), "bad": torch.tensor(marked)}


class BrokenTask(ToyTask):
    """Breaks what it is told to on the marked batch."""

    def __init__(self, where):
        self.where = where

    def loss(self, model, batch, state, smoothing):
        handles = []
        if bool(batch["bad"]) and self.where in ("core", "dropout"):
            module = dict(model.named_modules())[self.where]
            handles.append(module.register_forward_hook(spoil, prepend=True))
        loss = super().loss(model, batch, state, smoothing)
        for handle in handles:
            handle.remove()
        if bool(batch["bad"]) and self.where == "loss":
            return ToyLoss(loss.total * float("inf"), loss.count, loss.state)
        if bool(batch["bad"]) and self.where == "gradient":
            zero = model.head.bias.sum() * 0
            return ToyLoss(loss.total + torch.sqrt(zero), loss.count, loss.state)  # d√x at 0
        return loss


def spoil(module, inputs, output):
    return (output[0] * float("nan"), output[1]) if isinstance(output, tuple) else output * float("nan")


@pytest.mark.parametrize(
    ("where", "message"),
    [
        (
            "core",
            r"The loss must be finite, but is not at step 6 \(epoch 2, batch 4\); first bad module: `core`\.",
        ),
        ("dropout", r"first bad module: `dropout`\."),
        ("loss", r"\(epoch 2, batch 4\); first bad module: the model itself\."),
        (
            "gradient",
            r"The gradient must be finite.*\(epoch 2, batch 3\); .* first bad gradient: `head\.bias`\.",
        ),
    ],
)
def test_it_names_step_batch_and_module_and_touches_nothing(tmp_path, where, message):
    folder, model = make_folder(tmp_path / "run"), make_model()
    before = []

    def on_event(name, values):
        if name == "train":
            before[:] = [parameter.detach().clone() for parameter in model.parameters()]

    with pytest.raises(NonFinite, match=message):
        train(model, BrokenTask(where), BrokenFeed(), None, PLAIN, folder, on_event=on_event, quiet=True)
    assert all(torch.equal(p, old) for p, old in zip(model.parameters(), before, strict=True))
    assert folder.newest().step == 5
    assert not any(hook for module in model.modules() for hook in module._forward_hooks)


def test_a_finite_training_is_left_alone(tmp_path):
    train_toy(
        make_folder(tmp_path / "run"), replace(PLAIN, steps=8), task=BrokenTask("nowhere"), feed=BrokenFeed()
    )
