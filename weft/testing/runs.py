"""The contract on a trained run: its own model and fields, on made-up inputs."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from weft.core.errors import DataError
from weft.core.sequences import Sequences
from weft.core.shapes import Int, Tensor
from weft.core.state import State
from weft.data import Dataset
from weft.explain import made_up
from weft.testing.contract import close

LENGTHS = (7, 2, 5, 3, 6, 4)  # of the made-up items, times a factor where a task needs longer ones
FACTORS = (1, 8, 64, 512)
SHORTEST = 3  # steps a batch must have for a check to mean something
NOISE = 3  # padded steps added
DIGITS = 1e-4  # relative, between numbers told alone and in a batch
LOSS_TOLERANCE = 1e-5  # relative; tasks take their losses in float32

Batch = Mapping[str, Any]


@dataclass(frozen=True)
class Finding:
    """What came of one check: nothing, or what differs."""

    check: str
    problem: str = ""

    @property
    def passed(self) -> bool:
        return not self.problem


@dataclass(frozen=True)
class Called:
    """One call of a model's encoder or backbone."""

    network: Any
    inputs: tuple[Any, ...]
    output: Sequences


@dataclass(frozen=True)
class Subject:
    """A run's task and its model in float64 with dropout off, a batch for them, and the run itself."""

    run: Any
    model: nn.Module
    batch: Batch
    inputs: list[Any]

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def loss(self, batch: Batch) -> Tensor:
        return self.run.task.loss(self.model, batch, None, 0.0).total

    def calls(self, batch: Batch) -> list[Called]:
        """Return what the model's networks were given for a batch, and gave."""
        found: list[Called] = []

        def note(module: nn.Module, inputs: tuple[Any, ...], output: Any) -> None:
            sequences = output if isinstance(output, Sequences) else output[0]
            found.append(Called(module, inputs, sequences))

        handles = [module.register_forward_hook(note) for module in networks(self.model)]
        try:
            with torch.no_grad():
                self.loss(batch)
        finally:
            for handle in handles:
                handle.remove()
        return found


Check = Callable[[Subject], None]


def check_run(path: str | Path) -> Iterator[Finding]:
    """Check a run's folder and its model, one finding a check; without whole weights nothing else can be."""
    from weft.api.run import open_run
    from weft.runs import RunFolder

    folder = RunFolder.open(path)
    finding = find("checkpoint whole by its manifest", lambda: folder.checkpoint("best").verify())
    yield finding
    if not finding.passed:
        return
    run = open_run(path)
    yield find("reloaded to the bit", lambda: check_reload(run))
    subject = make_subject(run)
    for name, check in checks_for_model(subject).items():
        yield find(name, partial(check, subject))


def make_subject(run: Any) -> Subject:
    """Make up inputs for a run's fields, and bring its model to float64."""
    data, batch = _make_up(run)
    device = next(run.model.parameters()).device
    first, field = next(iter(run.session.fields.items()))
    inputs = [field.decode(data.item(i)[first]) for i in range(len(data))]
    batch = {name: _double(value).to(device) for name, value in batch.items()}
    return Subject(run, copy.deepcopy(run.model).double().eval(), batch, inputs)


def checks_for_model(subject: Subject) -> dict[str, Check]:
    """Return the checks that apply to a model, by name."""
    checks: dict[str, Check] = {
        "padding changes nothing": check_padding,
        "rows permute": check_rows_permute,
        "step = forward": check_step,
        "losses: many = one by one": check_rows_alone,
        "answers: many = one by one": check_answers,
        "gradients finite": check_gradients,
    }
    if not any(isinstance(value, Sequences) for value in subject.batch.values()):
        del checks["padding changes nothing"]
    if not any(hasattr(call.network, "step") for call in subject.calls(subject.batch)):
        del checks["step = forward"]
    return checks


def check_reload(run: Any) -> None:
    """The weights in memory are those of the checkpoint, bit for bit."""
    saved, held = run.folder.checkpoint("best").weights(), run.model.state_dict()
    assert saved.keys() == held.keys(), "other tensors than the model has"
    for name, tensor in held.items():
        assert torch.equal(saved[name], tensor.cpu()), f"{name} differs from the checkpoint"


def check_padding(subject: Subject) -> None:
    """More padding, whatever stands in it, changes neither outputs nor loss."""
    longer = {name: _pad(value) for name, value in subject.batch.items()}
    for one, other in zip(subject.calls(subject.batch), subject.calls(longer), strict=True):
        steps = min(one.output.max_length, other.output.max_length)
        left, right = one.output.fill(0).data[:, :steps], other.output.fill(0).data[:, :steps]
        close(right, left, "outputs with other padding")
    _same_loss(subject, longer)


def check_rows_permute(subject: Subject) -> None:
    """Rows do not know each other."""
    rows = _rows(subject.batch)
    order = torch.arange(rows, device=subject.device).flip(0)
    mixed = {name: _take(value, order) for name, value in subject.batch.items()}
    for one, other in zip(subject.calls(subject.batch), subject.calls(mixed), strict=True):
        close(other.output.data, one.output.data[_spread(order, one.output.batch_size)], "permuted rows")
    _same_loss(subject, mixed)


def check_rows_alone(subject: Subject) -> None:
    """The loss of a batch is the sum of its rows' losses."""
    with torch.no_grad():
        rows = torch.arange(_rows(subject.batch), device=subject.device).split(1)
        alone = [subject.loss({n: _take(v, row) for n, v in subject.batch.items()}) for row in rows]
        together = subject.loss(subject.batch)
    close(torch.stack(alone).sum(), together, "loss", LOSS_TOLERANCE * max(1.0, float(together.abs())))


def check_step(subject: Subject) -> None:
    """Step by step gives what all at once gives."""
    for call in subject.calls(subject.batch):
        if hasattr(call.network, "step"):
            _walk(call)


def check_gradients(subject: Subject) -> None:
    """Every parameter that takes part gets a finite gradient, in the run's own precision."""
    model = copy.deepcopy(subject.run.model).train()
    batch = {name: value.to(subject.device) for name, value in _make_up(subject.run)[1].items()}
    subject.run.task.loss(model, batch, None, 0.0).total.backward()
    for name, parameter in model.named_parameters():
        finite = parameter.grad is None or bool(torch.isfinite(parameter.grad).all())
        assert finite, f"{name} has a gradient that is not finite"


def check_answers(subject: Subject) -> None:
    """Inputs asked together are answered as each is alone; numbers to 4 digits."""
    decoding = subject.run.decoding(**{"method": "greedy", "max_length": 8})
    task, model = subject.run.task, subject.run.model
    together = [p.text for p in task.predict(model, subject.inputs, decoding)]
    assert len(together) == len(subject.inputs), f"{len(subject.inputs)} inputs, {len(together)} answers"
    for i, raw in enumerate(subject.inputs):
        (alone,) = [p.text for p in task.predict(model, [raw], decoding)]
        assert _alike(alone, together[i]), f"input {i + 1}: {alone!r:.60} alone, {together[i]!r:.60} together"


def networks(model: nn.Module) -> list[nn.Module]:
    """Return a model's encoders and backbones, but none within another."""
    names = [name for name, _ in model.named_modules() if name.split(".")[-1] in ("encoder", "backbone")]
    inner = {name for name in names for other in names if name.startswith(f"{other}.")}
    return [model.get_submodule(name) for name in names if name not in inner]


def find(name: str, check: Callable[[], object]) -> Finding:
    """Run a check and return what it found."""
    try:
        check()
    except Exception as error:  # whatever goes wrong is what was looked for
        reason = " ".join(str(error).split()) or "failed"
        return Finding(
            name, reason if isinstance(error, AssertionError) else f"{type(error).__name__}: {reason}"
        )
    return Finding(name)


def _make_up(run: Any) -> tuple[Dataset, Batch]:
    """Return made-up items, as short as the task can use, and a batch of them."""
    for factor in FACTORS:
        data = made_up(run.session.fields, [factor * n for n in LENGTHS])
        with suppress(DataError):  # windows are longer than that
            batch = run.task.feed(data, 0).batch(0, 0)
            sequences = [value for value in batch.values() if isinstance(value, Sequences)]
            if all(value.max_length >= SHORTEST for value in sequences):
                return data, batch
    raise DataError(f"This run takes sequences longer than {FACTORS[-1] * max(LENGTHS):,}: not checked.")


def _walk(call: Called) -> None:
    x, memory = call.inputs[0], call.inputs[2] if len(call.inputs) > 2 else None
    with torch.no_grad():
        state: State = call.network.init_state(x.batch_size, memory=memory)
        for t in range(x.max_length):
            y, state = call.network.step(x.data[:, t], state, memory)
            valid = x.mask()[:, t]
            close(y[valid], call.output.data[valid, t], f"step {t + 1}")


def _same_loss(subject: Subject, other: Batch) -> None:
    with torch.no_grad():
        want, got = subject.loss(subject.batch), subject.loss(other)
    close(got, want, "loss", LOSS_TOLERANCE * max(1.0, float(want.abs())))


def _double(value: Any) -> Any:
    if isinstance(value, Sequences):
        return value.with_data(_double(value.data))
    return value.double() if value.is_floating_point() else value


def _pad(value: Any) -> Any:
    """Add padded steps, and let all padding hold what a row begins with: an id stays an id."""
    if not isinstance(value, Sequences):
        return value
    longer = torch.cat([value.data, value.data[:, :1].expand(-1, NOISE, *value.data.shape[2:])], dim=1)
    keep = Sequences(longer, value.lengths).mask()
    return value.with_data(
        torch.where(keep.view(*keep.shape, *[1] * (longer.dim() - 2)), longer, longer[:, :1])
    )


def _take(value: Any, rows: Int[Tensor, "R"]) -> Any:
    return value.rows(rows) if isinstance(value, Sequences) else value.index_select(0, rows)


def _rows(batch: Batch) -> int:
    return next(iter(batch.values())).data.shape[0]


def _spread(order: Int[Tensor, "R"], rows: int) -> Int[Tensor, "M"]:
    """Return the order of a network's rows, of which each row of the batch may have several."""
    each = rows // len(order)
    return (order[:, None] * each + torch.arange(each, device=order.device)).flatten()


def _alike(left: str, right: str) -> bool:
    return left == right or _close_numbers(_read(left), _read(right))


def _read(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


def _close_numbers(left: Any, right: Any) -> bool:
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(_close_numbers, left, right))
    if isinstance(left, int | float) and isinstance(right, int | float):
        return abs(left - right) <= DIGITS * max(1.0, abs(left))
    return False
