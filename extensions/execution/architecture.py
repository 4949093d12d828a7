"""Find models of one architecture, name the difference of others, and what prevents fusion."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FunctionType
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from .converted_layers.recurrence import RECURRENT, conversion_obstacle
from .purity import DROPOUT, hooks_among

Architecture = tuple[tuple[str, str], ...]
"""Each part of a model with its description; equal for models that compute the same function of
their weights and inputs."""
_MODELS: Final = "Pass a list of torch.nn.Module."
_WITHOUT_BATCHING_RULE: Final = (torch.nn.LSTM, torch.nn.GRU, torch.nn.RNN)
# What a module holds beside its own attributes.
_OF_MODULE: Final = frozenset(vars(torch.nn.Module()))

# Attributes of LSTM and GRU that refer to their parameters, too.
_PARAMETERS_AGAIN: Final = ("_flat_weights", "_flat_weight_refs")


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelGroup:
    """Models of one architecture.

    Attributes:
        places: their indices among all models.
        difference: from the first model of all; empty for the first group.
        obstacle: why they are not fused; empty where they can be.
    """

    places: tuple[int, ...]
    models: tuple[torch.nn.Module, ...]
    difference: str = ""
    obstacle: str = ""


def group_models(
    models: Sequence[torch.nn.Module],
    *,
    new_random_numbers: bool = False,
    convert_recurrent: bool = False,
) -> list[ModelGroup]:
    """Group models by architecture, in the order of their first members.

    Args:
        new_random_numbers: dropout in training mode does not prevent fusion.
        convert_recurrent: LSTM and GRU do not prevent it, as they are converted.

    Raises:
        InvalidInput: there is no model, or something that is no module.
    """
    one = isinstance(models, torch.nn.Module) and not isinstance(models, torch.nn.ModuleList)
    if one or not isinstance(models, Iterable):
        raise InvalidInput(
            f"What was passed is {type(models).__name__}{', one module' if one else ''}.",
            accepted=_MODELS,
        )
    if not models:
        raise InvalidInput("There is no model.", accepted=_MODELS)
    for index, model in enumerate(models):
        if not isinstance(model, torch.nn.Module):
            raise InvalidInput(
                f"Model {index} is {type(model).__name__}.",
                accepted="A model is a torch.nn.Module; models_of(architecture, states) makes "
                "models from weights.",
            )
    found: dict[Architecture, list[int]] = {}
    for index, model in enumerate(models):
        found.setdefault(architecture(model), []).append(index)
    first = next(iter(found))
    return [
        ModelGroup(
            places=tuple(places),
            models=tuple(members := [models[place] for place in places]),
            difference="" if kind is first else architecture_difference(first, kind),
            obstacle=_obstacle(
                members,
                new_random_numbers=new_random_numbers,
                convert_recurrent=convert_recurrent,
            ),
        )
        for kind, places in found.items()
    ]


def architecture(model: torch.nn.Module) -> Architecture:
    """Describe everything of a model but the values of its parameters and buffers."""
    return tuple(_parts(model))


def architecture_difference(first: Architecture, other: Architecture) -> str:
    """Return the first part in which two architectures differ, as a sentence."""
    ours, theirs = dict(first), dict(other)
    for part, description in first:
        if part not in theirs:
            return f"{part} is missing"
        if theirs[part] != description:
            return f"{part} is {theirs[part]} instead of {description}"
    return next((f"{part} is added" for part, _ in other if part not in ours), "order of parts")


def _parts(model: torch.nn.Module) -> Iterator[tuple[str, str]]:
    for name, module in model.named_modules(remove_duplicate=False):
        at = name or "the model"
        kind = type(module)
        yield at, _class(kind)
        yield f"{at}.training", str(module.training)
        for key, tensor in (*module._parameters.items(), *module._buffers.items()):
            yield f"{at}.{key}", _tensor(tensor)
        for key, value in vars(module).items():
            if key not in _OF_MODULE and key not in _PARAMETERS_AGAIN:
                yield f"{at}.{key}", _value(value)


def _tensor(tensor: torch.Tensor | None) -> str:
    if tensor is None:
        return "absent"
    kind = f"{tuple(tensor.shape)} of {tensor.dtype} on {tensor.device}"
    return kind if tensor.requires_grad else f"{kind} without gradient"


def _value(value: Any) -> str:
    """Describe an attribute; what cannot be compared by content differs unless it is shared."""
    if isinstance(value, torch.Tensor):
        content = value.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy()
        digest = hashlib.sha256(content).hexdigest()[:12]
        return f"{_tensor(value)}, sha256 {digest}"
    if isinstance(value, FunctionType) and value.__closure__ is None:
        code = hashlib.sha256(_code(value).encode()).hexdigest()[:12]
        return f"{value.__module__}.{value.__qualname__} ({code})"
    return _class(value) if isinstance(value, type) else repr(value)


def _class(kind: type) -> str:
    """Name a class; one that its module does not have by this name is known by identity."""
    found: Any = sys.modules.get(kind.__module__)
    for part in kind.__qualname__.split("."):
        found = getattr(found, part, None)
    name = f"{kind.__module__}.{kind.__qualname__}"
    return name if found is kind else f"{name} ({id(kind):#x})"


def _code(function: FunctionType) -> str:
    """Describe what a function without a closure does: its code, constants, names and defaults."""
    code = function.__code__
    parts = (code.co_code, code.co_consts, code.co_names, code.co_varnames)
    return repr((parts, function.__defaults__, function.__kwdefaults__))


def _obstacle(
    models: Sequence[torch.nn.Module], *, new_random_numbers: bool, convert_recurrent: bool
) -> str:
    model = models[0]
    known = {id(each) for each in (*model.modules(), *(tensor for _, tensor in _tensors(model)))}
    for name, module in model.named_modules():
        kind = type(module).__name__
        if attribute := _unregistered(module, known):
            return (
                f"{name or 'the model'} has a tensor or layer in {attribute} that is no parameter, "
                "no buffer and no layer of it; use register_buffer, or a ModuleList"
            )
        if convert_recurrent and isinstance(module, RECURRENT):
            if reason := conversion_obstacle(module):
                return f"{name or 'the model'} is {kind} and {reason}"
        elif isinstance(module, _WITHOUT_BATCHING_RULE):
            advice = "; fuse(…, convert_recurrent=True) converts it"
            return (
                f"{name or 'the model'} is {kind}, for which PyTorch has no batching rule"
                f"{advice if isinstance(module, RECURRENT) else ''}"
            )
        if isinstance(module, DROPOUT) and module.training and not new_random_numbers:
            return (
                f"{name or 'the model'} is {kind} in training mode, whose random numbers would be "
                "others; call model.eval(), or agree with new_random_numbers=True when you train"
            )
    if reason := hooks_among(module for each in models for module in each.modules()):
        return f"{reason}, which would be called once for all models"
    names = [name for name, _ in _tensors(model)]
    owners = [dict(_tensors(each)) for each in models]
    for name in names:
        distinct = {id(each[name]) for each in owners}
        if 1 < len(distinct) < len(models):
            return f"{name} is shared by some of the models"
        if len(distinct) == 1 and len(models) > 1:
            return f"{name} is shared by all models"
    return "" if names else "the models have no weights"


def _unregistered(module: torch.nn.Module, known: Collection[int]) -> str:
    """Return the name of an attribute whose tensors or layers would be those of one model."""
    for name, value in vars(module).items():
        if name not in _OF_MODULE and any(
            isinstance(leaf, torch.Tensor | torch.nn.Module) and id(leaf) not in known
            for leaf in pytree.tree_leaves(value)
        ):
            return str(name)
    return ""


def _tensors(model: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    yield from model.named_parameters()
    yield from model.named_buffers()


def places_are(places: Sequence[int]) -> str:
    """Return ``Model 3 is`` or ``Models 0 to 2 are``, the beginning of a sentence."""
    return f"{places_text(places)} {'is' if len(places) == 1 else 'are'}"


def places_text(places: Sequence[int]) -> str:
    """Return the indices of models as the subject of a sentence."""
    if len(places) == 1:
        return f"Model {places[0]}"
    if list(places) == list(range(places[0], places[0] + len(places))):
        return f"Models {places[0]} to {places[-1]}"
    shown = ", ".join(map(str, places[:8]))
    return f"Models {shown}{', …' if len(places) > 8 else ''}"  # noqa: PLR2004
