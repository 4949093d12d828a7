"""Train many models of one architecture as one: ``carrel.execution.fuse_train``."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch.func import functional_call, grad_and_value, vmap

from ...hub.errors import InvalidInput
from .architecture import ModelGroup, group_models, places_are, places_text
from .choice import (
    CALLS,
    COMPILATION_SECONDS,
    SECONDS,
    ExecutionChoice,
    ExecutionSample,
    choose,
)
from .compilation import CountedCompilation
from .equality import TOLERANCE, difference
from .explanation import ExecutionExplanation
from .group_sizes import Compiler, GroupVariant, group_candidates, group_sizes, not_compiled
from .optimizers import OptimizerSettings
from .purity import DROPOUT
from .stacked_state import StackedState, Tensors, stack

Loss = Callable[[Any, torch.Tensor], torch.Tensor]
"""Outputs of one model and targets → a scalar."""


def fuse_train(
    models: Sequence[torch.nn.Module],
    loss: Loss,
    *,
    learning_rates: float | Sequence[float],
    optimizer: OptimizerSettings | str = "sgd",
    per_model: bool = False,
    new_random_numbers: bool = False,
    calls: int = CALLS,
    seconds: float = SECONDS,
) -> FusedTraining:
    """Return what trains all models, a batch at a time.

    ``step(inputs, targets)`` changes each model as its own optimizer would, and returns the losses.
    The first step chooses how; the models are trained in place.

    Args:
        loss: of one model, such as ``torch.nn.functional.cross_entropy``.
        learning_rates: one for all, or one a model.
        optimizer: a name, or the settings of ``torch.optim``'s optimizer of that name.
        per_model: inputs and targets have a first dimension for the models; otherwise all models
            train on the same batch.
        new_random_numbers: models with dropout may be fused; the numbers that it draws are others
            than those of a loop. The comparison with plain execution is made without dropout.
        calls: how many steps there will probably be.
        seconds: no compilation begins later than this in the first step.

    Raises:
        InvalidInput: no model, something that is no module, another number of learning rates than
            models, an unknown optimizer, or two models that share weights.
    """
    settings = OptimizerSettings(name=optimizer) if isinstance(optimizer, str) else optimizer
    groups = group_models(models, new_random_numbers=new_random_numbers)
    rates = _rates(learning_rates, len(models))
    for group in groups:
        if "shared by" in group.obstacle:
            raise InvalidInput(
                f"Models cannot be trained together: {group.obstacle}.",
                accepted="Models with weights of their own, such as copies by copy.deepcopy.",
            )
    parts = [
        _TrainedGroup(
            group,
            loss,
            rates[list(group.places)],
            settings,
            per_model=per_model,
            calls=calls,
            seconds=seconds,
        )
        for group in groups
    ]
    return FusedTraining(parts, len(models), per_model=per_model)


class FusedTraining:
    """Models that are trained together; see ``fuse_train``."""

    def __init__(self, parts: Sequence[_TrainedGroup], count: int, *, per_model: bool) -> None:
        self._parts = parts
        self._count = count
        self._per_model = per_model

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """Train each model on one batch.

        Returns:
            The losses before the step, one a model.

        Raises:
            InvalidInput: inputs for each model are as many as there are models.
            Exception: whatever plain training raises on this batch. As in a plain loop, the models
                before the one that failed may have made their step.
        """
        if self._per_model:
            for tensor in (inputs, targets):
                if tensor.shape[:1] != (self._count,):
                    raise InvalidInput(
                        f"A batch has the shape {tuple(tensor.shape)}.",
                        accepted="With per_model=True its first dimension is that of the "
                        f"{self._count} models.",
                    )
        losses: list[Any] = [None] * self._count
        for part in self._parts:
            batch = inputs, targets
            if self._per_model and len(self._parts) > 1:
                index = list(part.group.places)
                batch = inputs[index], targets[index]
            for place, value in zip(part.group.places, part.step(*batch).unbind(), strict=True):
                losses[place] = value
        return torch.stack(losses)

    def explanation(self) -> ExecutionExplanation:
        choices = {}
        notes = []
        for part in self._parts:
            name, are = places_text(part.group.places), places_are(part.group.places)
            if part.choice is not None:
                choices[name] = part.choice
            if part.group.difference:
                notes.append(f"{are} trained apart: {part.group.difference}.")
            if part.group.obstacle:
                notes.append(f"{are} trained one by one: {part.group.obstacle}.")
        return ExecutionExplanation(choices=choices, notes=tuple(notes))


@dataclass(slots=True)
class _Training:
    """Everything that a step changes, and the learning rates.

    All tensors have a first dimension for the models.
    """

    weights: StackedState
    optimizer: dict[str, Tensors]
    steps: torch.Tensor
    rates: torch.Tensor

    def members(self, first: int, stop: int) -> _Training:
        return _Training(
            weights=self.weights.members(first, stop),
            optimizer={
                kind: {name: tensor[first:stop] for name, tensor in tensors.items()}
                for kind, tensors in self.optimizer.items()
            },
            steps=self.steps[first:stop],
            rates=self.rates[first:stop],
        )

    def changed(self) -> list[list[torch.Tensor]]:
        """Return what a step changes: the weights, each buffer, each kind of optimizer state, and
        the number of steps. Tensors of one list are of one size, as gradients are."""
        weights = self.weights
        return [
            list(weights.trainable.values()),
            *([buffer] for buffer in weights.buffers.values()),
            *(list(tensors.values()) for tensors in self.optimizer.values()),
            [self.steps],
        ]


class _TrainedGroup:
    """The models of one architecture with their optimizer, and the way chosen for a step."""

    def __init__(
        self,
        group: ModelGroup,
        loss: Loss,
        rates: torch.Tensor,
        settings: OptimizerSettings,
        *,
        per_model: bool,
        calls: int,
        seconds: float,
    ) -> None:
        self.group = group
        self.choice: ExecutionChoice | None = None
        self._loss = loss
        self._settings = settings
        self._per_model = per_model
        self._calls = calls
        self._seconds = seconds
        weights = stack(group.models)
        device = next(weights.tensors()).device
        self._training = _Training(
            weights=weights,
            optimizer=settings.new_state(weights.trainable),
            steps=torch.zeros(len(group.models), device=device, dtype=torch.float64),
            rates=rates.to(device),
        )
        self._single = [self._training.members(i, i + 1) for i in range(len(group.models))]
        self._parameters = [dict(model.named_parameters()) for model in group.models]
        self._bases: list[torch.nn.Module] = []
        self._chosen: Callable[..., Any] = self._loop
        self._chosen_for: tuple[Any, ...] | None = None

    def step(self, inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        kind = (inputs.shape, inputs.dtype, targets.shape, targets.dtype)
        alone = bool(self.group.obstacle) or len(self.group.models) == 1
        if not alone and self._chosen_for is None:
            self._choose(inputs, targets)
            self._chosen_for = kind
        # The last batch of an epoch is often smaller: not worth another compilation.
        function = self._chosen if kind == self._chosen_for else self._loop
        losses: torch.Tensor = function(inputs, targets)
        return losses

    def _choose(self, inputs: torch.Tensor, targets: torch.Tensor) -> None:
        before = _copy(self._training.changed())
        # The first step of Adam goes a whole learning rate in the direction of a gradient of any
        # size, rounding errors included: its averages are compared, not its weights.
        first = 1 if self._training.optimizer else 0

        def restore() -> None:
            with torch.no_grad():
                for tensors, values in zip(self._training.changed(), before, strict=True):
                    for tensor, value in zip(tensors, values, strict=True):
                        tensor.copy_(value)

        def step(function: Callable[..., Any]) -> object:
            return function(inputs, targets)

        def result(function: Callable[..., Any]) -> object:
            losses = step(function)
            return losses, _copy(self._training.changed()[first:])

        try:
            with _without_dropout(self.group.models) as self._bases:
                self._chosen, self.choice = choose(
                    group_candidates(
                        self._loop,
                        (
                            GroupVariant(fused=partial(self._fused, not_compiled)),
                            GroupVariant(
                                name="compiled",
                                fused=partial(self._fused, CountedCompilation),
                                build_seconds=COMPILATION_SECONDS,
                            ),
                        ),
                        group_sizes(len(self.group.models)),
                    ),
                    ExecutionSample(
                        call=step,
                        result=result,
                        restore=restore,
                        difference=partial(_step_difference, before[first:]),
                    ),
                    calls=self._calls,
                    seconds=self._seconds,
                )
        finally:
            restore()

    def _loop(
        self, inputs: torch.Tensor, targets: torch.Tensor, places: Sequence[int] | None = None
    ) -> torch.Tensor:
        losses = []
        for index in range(len(self.group.models)) if places is None else places:
            model = self.group.models[index]
            batch = (inputs[index], targets[index]) if self._per_model else (inputs, targets)
            with torch.enable_grad():
                value = self._loss(model(batch[0]), batch[1])
                own = self._single[index]
                parameters = self._parameters[index]
                names = list(own.weights.trainable)
                found = torch.autograd.grad(
                    value, [parameters[name] for name in names], allow_unused=True
                )
            with torch.no_grad():
                gradients = self._gradients(own.weights.trainable, found)
                own.steps.add_(1)
                self._settings.apply(
                    own.weights.trainable, gradients, own.optimizer, own.rates, own.steps
                )
            losses.append(value.detach())
        return torch.stack(losses)

    def _gradients(
        self, weights: Tensors, found: Sequence[torch.Tensor | None]
    ) -> dict[str, torch.Tensor]:
        """Return the gradients of one model by name; zeros for weights that are not used."""
        gradients = {}
        for (name, weight), gradient in zip(weights.items(), found, strict=True):
            if gradient is None and self._settings.weight_decay:
                raise InvalidInput(
                    f"{name} is not used by the model, and weight decay would change it.",
                    accepted="Set requires_grad=False on it.",
                )
            gradients[name] = torch.zeros_like(weight) if gradient is None else gradient[None]
        return gradients

    def _fused(self, compiler: Compiler, size: int) -> Callable[..., torch.Tensor]:
        """Return a step of whole groups as one, and of the models left over one by one."""
        base = copy.deepcopy(self.group.models[0]).to("meta")
        self._bases.append(base)
        settings, loss = self._settings, self._loss
        dimension = 0 if self._per_model else None

        def value(trainable: Any, others: Any, inputs: Any, targets: Any) -> torch.Tensor:
            return loss(functional_call(base, trainable | others, (inputs,)), targets)

        def group(training: Any, inputs: Any, targets: Any) -> torch.Tensor:
            trainable, frozen, buffers, optimizer, steps, rates = training
            gradients, losses = vmap(
                grad_and_value(value), in_dims=(0, 0, dimension, dimension), randomness="different"
            )(trainable, frozen | buffers, inputs, targets)
            steps.add_(1)
            settings.apply(trainable, gradients, optimizer, rates, steps)
            return losses

        execute = compiler(group)
        count = len(self.group.models)
        starts = range(0, count - count % size, size)
        members = [_parts_of(self._training.members(start, start + size)) for start in starts]

        def run(inputs: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
            losses = []
            with torch.no_grad():
                for start, own in zip(starts, members, strict=True):
                    batch = inputs, targets
                    if self._per_model:
                        batch = inputs[start : start + size], targets[start : start + size]
                    losses.append(execute(own, *batch))
            rest = range(len(starts) * size, count)
            if rest:
                losses.append(self._loop(inputs, targets, rest))
            return torch.cat(losses)

        return run


def _parts_of(training: _Training) -> tuple[Any, ...]:
    weights = training.weights
    return (
        weights.trainable,
        weights.frozen,
        weights.buffers,
        training.optimizer,
        training.steps,
        training.rates,
    )


def _copy(tensors: Sequence[Sequence[torch.Tensor]]) -> list[list[torch.Tensor]]:
    return [[tensor.clone() for tensor in each] for each in tensors]


def _step_difference(before: Sequence[Sequence[torch.Tensor]], plain: Any, other: Any) -> str:
    """Compare the losses and the changes of two steps, for each model by itself.

    A change is known up to the rounding of what was changed, and a gradient is a sum of terms that
    cancel each other: ten times the tolerance of results. Where all cancel, as for a bias before
    BatchNorm, a gradient is rounding errors of the others, which are the measure then.
    """
    if found := difference(plain[0], other[0]):
        return f"of the losses, {found}"
    for olds, ones, twos in zip(before, plain[1], other[1], strict=True):
        changes = [_largest(one - old) for old, one in zip(olds, ones, strict=True)]
        for old, one, two, change in zip(olds, ones, twos, changes, strict=True):
            if not old.is_floating_point():
                same = torch.equal(one, two)
            else:
                tolerance = TOLERANCE[old.dtype]
                rounding = 4 * torch.finfo(old.dtype).eps * (_largest(old) + change)
                others = torch.stack(changes).amax(0)
                allowed = tolerance * (10 * change + others) + rounding
                finite = torch.equal(torch.isfinite(one), torch.isfinite(two))
                same = finite and bool((_largest(two - one) <= allowed).all())
            if not same:
                return "a step changes the weights or the optimizer's state otherwise"
    return ""


def _largest(tensor: torch.Tensor) -> torch.Tensor:
    """Return the largest finite absolute value of each model."""
    finite = torch.nan_to_num(tensor.double().abs(), 0.0, 0.0, 0.0)
    return finite.reshape(len(tensor), -1).amax(1)


def _rates(learning_rates: float | Sequence[float], count: int) -> torch.Tensor:
    if isinstance(learning_rates, int | float):
        return torch.full((count,), float(learning_rates), dtype=torch.float64)
    rates = torch.tensor([float(rate) for rate in learning_rates], dtype=torch.float64)
    if len(rates) != count:
        raise InvalidInput(
            f"There are {len(rates)} learning rates.",
            accepted=f"One number, or one for each of the {count} models.",
            field="learning_rates",
        )
    return rates


@contextmanager
def _without_dropout(models: Sequence[torch.nn.Module]) -> Iterator[list[torch.nn.Module]]:
    """Switch dropout off in models, and in those that are added to the list meanwhile."""
    switched = [
        module
        for model in models
        for module in model.modules()
        if isinstance(module, DROPOUT) and module.training
    ]
    for module in switched:
        module.training = False
    copies: list[torch.nn.Module] = []
    try:
        yield copies
    finally:
        names = {
            name
            for name, module in models[0].named_modules()
            if any(module is each for each in switched)
        }
        for module in switched:
            module.training = True
        for each in copies:
            for name in names:
                each.get_submodule(name).training = True
