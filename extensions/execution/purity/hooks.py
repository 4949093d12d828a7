"""The hooks of modules: what PyTorch calls beside their ``forward``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import torch
from torch.nn.modules import module as _of_all_modules

HOOKS: Final = (
    "_forward_hooks",
    "_forward_pre_hooks",
    "_backward_hooks",
    "_backward_pre_hooks",
)
"""The attributes of a module that hold its hooks by their handles."""


def hook_tables(modules: Iterable[torch.nn.Module]) -> list[Any]:
    """Return what holds the hooks of these modules, and those that are called for all modules.

    A table is empty as long as no hook is registered in it.
    """
    of_all = [getattr(_of_all_modules, f"_global{name}") for name in HOOKS]
    return of_all + [getattr(module, name) for module in modules for name in HOOKS]


def hooks_among(modules: Iterable[torch.nn.Module]) -> str:
    """Return which of these modules has a hook, as a sentence; empty if none has."""
    if any(hook_tables([])):
        return "a hook is registered for all modules"
    for module in modules:
        if any(getattr(module, name) for name in HOOKS):
            return f"{type(module).__name__} has hooks"
    return ""
