"""Make models from the weights of many authors for one architecture, with checks."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Final

import torch

from ...hub.errors import InvalidInput

_MOST_LISTED: Final = 8


def models_of(
    architecture: torch.nn.Module,
    states: Sequence[Mapping[str, torch.Tensor]],
    *,
    names: Sequence[str] | None = None,
) -> list[torch.nn.Module]:
    """Return a copy of the model for each state, with its weights.

    Args:
        architecture: its own weights are not used, its mode (``eval``) is kept.
        states: weights by name, as of ``state_dict`` or ``safetensors.torch.load_file``.
        names: what messages call the states; ``weights 0`` and so on unless they are given.

    Raises:
        InvalidInput: a state has missing or extra names, or a tensor of another shape or dtype; the
            message names the state and the tensor. Or an argument is of another kind.
    """
    _check_arguments(architecture, states, names)
    expected = architecture.state_dict()
    called = names or [f"weights {index}" for index in range(len(states))]
    for name, state in zip(called, states, strict=True):
        _check(name, state, expected)
    models = []
    for state in states:
        model = copy.deepcopy(architecture)
        model.load_state_dict(state)
        models.append(model)
    return models


def _check_arguments(architecture: object, states: object, names: Sequence[str] | None) -> None:
    if not isinstance(architecture, torch.nn.Module):
        raise InvalidInput(
            f"The architecture is {type(architecture).__name__}.", accepted="A torch.nn.Module."
        )
    if isinstance(states, Mapping):
        raise InvalidInput("These are the weights of one model.", accepted="A list of weights.")
    if not isinstance(states, Sequence) or isinstance(states, str):
        raise InvalidInput(
            f"The weights are {type(states).__name__}.", accepted="A list of weights."
        )
    if names is not None and len(names) != len(states):
        raise InvalidInput(
            f"There are {len(states)} weights, and names for {len(names)}.",
            accepted="One name for each of the weights.",
        )


def _check(
    weights: str, state: Mapping[str, torch.Tensor], expected: Mapping[str, torch.Tensor]
) -> None:
    first = f"{weights[:1].upper()}{weights[1:]}"
    accepted = "The weights must be those of the architecture."
    if not isinstance(state, Mapping):
        raise InvalidInput(
            f"{first} are {type(state).__name__}.",
            accepted="A mapping of names to tensors, as state_dict() or "
            "safetensors.torch.load_file(path) returns it.",
        )
    if missing := sorted(expected.keys() - state.keys()):
        raise InvalidInput(f"{first} lack {_listed(missing)}.", accepted=accepted)
    if extra := sorted(map(str, state.keys() - expected.keys())):
        raise InvalidInput(
            f"{first} have {_listed(extra)}, which the architecture does not have.",
            accepted=accepted,
        )
    for name, tensor in expected.items():
        found = state[name]
        if not isinstance(found, torch.Tensor):
            raise InvalidInput(
                f"{name} of {weights} is {type(found).__name__}.", accepted="A tensor."
            )
        for what, is_, should in (
            ("shape", tuple(found.shape), tuple(tensor.shape)),
            ("dtype", found.dtype, tensor.dtype),
        ):
            if is_ != should:
                raise InvalidInput(
                    f"{name} of {weights} has the {what} {is_}.",
                    accepted=f"The architecture has {should}.",
                )


def _listed(names: Sequence[str]) -> str:
    more = len(names) - _MOST_LISTED
    return ", ".join(names[:_MOST_LISTED]) + (f" and {more} more" if more > 0 else "")
