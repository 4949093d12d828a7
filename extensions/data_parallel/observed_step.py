"""Observe a training step: its modules, its optimizers, and the gradients that these get.

PyTorch calls global hooks for every module and every optimizer, so that a step need not name them.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.optim.optimizer import register_optimizer_step_pre_hook

from ...hub.errors import InvalidInput


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedStep:
    """What a step used, with the values from before it, and what it did.

    Attributes:
        result: what the step returned.
        gradients: of parameters by ``id``, when an optimizer first used them.
        modules: in the order of their calls; submodules too.
        optimizers: in the order of their calls.
    """

    result: Any
    gradients: Mapping[int, torch.Tensor]
    modules: tuple[torch.nn.Module, ...]
    optimizers: tuple[Any, ...]
    _values: tuple[tuple[torch.Tensor, torch.Tensor], ...]
    _states: tuple[Any, ...]

    @property
    def parameters(self) -> list[torch.Tensor]:
        """Return the parameters of the optimizers that require gradients, in their order."""
        return [each for each in _parameters(self.optimizers) if each.requires_grad]

    @property
    def names(self) -> dict[int, str]:
        """Return the names of parameters in the first module that has each."""
        found: dict[int, str] = {}
        for module in self.modules:
            for name, parameter in module.named_parameters():
                found.setdefault(id(parameter), f"{type(module).__name__}.{name}")
        return found

    @property
    def tensors(self) -> list[torch.Tensor]:
        """Return all parameters, buffers, and tensors of optimizers, in the same order in each
        process."""
        found = [tensor for tensor, _ in self._values]
        for optimizer in self.optimizers:
            for parameter in _parameters([optimizer]):
                state = optimizer.state.get(parameter, {})
                found += [each for each in state.values() if isinstance(each, torch.Tensor)]
        return found

    def restore(self) -> None:
        """Give modules and optimizers the values from before the step."""
        with torch.no_grad():
            for tensor, value in self._values:
                tensor.copy_(value)
                tensor.grad = None
        for optimizer, state in zip(self.optimizers, self._states, strict=True):
            # Its tensors would become those of the optimizer.
            optimizer.load_state_dict(copy.deepcopy(state))


@dataclass(slots=True)
class _Observation:
    modules: dict[int, torch.nn.Module] = field(default_factory=dict)
    optimizers: dict[int, Any] = field(default_factory=dict)
    states: list[Any] = field(default_factory=list)
    values: dict[int, tuple[torch.Tensor, torch.Tensor]] = field(default_factory=dict)
    gradients: dict[int, torch.Tensor] = field(default_factory=dict)

    def module_called(self, module: torch.nn.Module, _inputs: Any) -> None:
        for each in module.modules():
            if id(each) not in self.modules:
                self.modules[id(each)] = each
                for tensor in each.buffers(recurse=False):
                    self._save(tensor)

    def optimizer_called(self, optimizer: Any, args: Any, kwargs: Any) -> None:
        refuse_closure(args, kwargs)
        if id(optimizer) not in self.optimizers:
            self.optimizers[id(optimizer)] = optimizer
            self.states.append(copy.deepcopy(optimizer.state_dict()))
        for parameter in _parameters([optimizer]):
            self._save(parameter)
            if parameter.grad is not None and id(parameter) not in self.gradients:
                gradient = parameter.grad.detach()
                gradient = gradient.coalesce() if gradient.is_sparse else gradient.clone()
                self.gradients[id(parameter)] = gradient

    def _save(self, tensor: torch.Tensor) -> None:
        if id(tensor) not in self.values:
            self.values[id(tensor)] = (tensor, tensor.detach().clone())


def observe(call: Callable[[], Any]) -> ObservedStep:
    """Execute a step once.

    Raises:
        InvalidInput: no optimizer was used, or the step changes the settings of one.
        Exception: whatever the step raises.
    """
    seen = _Observation()
    handles = [
        register_module_forward_pre_hook(seen.module_called),
        register_optimizer_step_pre_hook(seen.optimizer_called),
    ]
    try:
        result = call()
    finally:
        for handle in handles:
            handle.remove()
    if not seen.optimizers:
        raise InvalidInput(
            "The step used no optimizer.",
            accepted="A function that calls backward() and step() of optimizers of torch.optim.",
        )
    step = ObservedStep(
        result=result,
        gradients=seen.gradients,
        modules=tuple(seen.modules.values()),
        optimizers=tuple(seen.optimizers.values()),
        _values=tuple(seen.values.values()),
        _states=tuple(seen.states),
    )
    for optimizer, state in zip(step.optimizers, seen.states, strict=True):
        if optimizer.state_dict()["param_groups"] != state["param_groups"]:
            step.restore()
            raise InvalidInput(
                "The step changes settings of its optimizer, such as the learning rate.",
                accepted="Call a scheduler of the learning rate after the step, outside of it.",
            )
    return step


@contextmanager
def refusing_other_parameters(known: Mapping[int, torch.Tensor]) -> Iterator[None]:
    """Refuse that an optimizer uses the gradient of a parameter that is not summed.

    Raises:
        InvalidInput: it does.
    """

    def check(optimizer: Any, args: Any, kwargs: Any) -> None:
        refuse_closure(args, kwargs)
        for parameter in _parameters([optimizer]):
            if parameter.grad is not None and id(parameter) not in known:
                raise InvalidInput(
                    "The step trains a parameter that it did not train in its first call.",
                    accepted="Call parallelize again when you change what is trained.",
                )

    handle = register_optimizer_step_pre_hook(check)
    try:
        yield
    finally:
        handle.remove()


def refuse_closure(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Refuse ``optimizer.step(closure)``: its gradients come after what is compared, and processes
    may call the closure another number of times.

    Args: args, kwargs: of the hook of an optimizer, whose first argument is the optimizer.

    Raises InvalidInput.
    """
    if any(each is not None for each in (*args[1:], kwargs.get("closure"))):
        raise InvalidInput(
            "The step passes a closure to its optimizer.",
            accepted="Call backward() and then step() without a closure. LBFGS trains on one "
            "device only.",
        )


def _parameters(optimizers: Any) -> list[torch.Tensor]:
    found = {
        id(parameter): parameter
        for optimizer in optimizers
        for group in optimizer.param_groups
        for parameter in group["params"]
    }
    return list(found.values())
