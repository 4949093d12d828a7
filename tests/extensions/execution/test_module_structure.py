"""Which changes of modules, of their classes and of what they refer to are seen."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from ... import torch_packages

torch, _ = torch_packages.load()
structures = import_module("carrel.extensions.execution.purity.module_structure")
kinds = import_module("carrel.extensions.execution.purity.tensor_kinds")

SETTINGS = SimpleNamespace(scale=2.0)


def model() -> Any:
    class Layer(torch.nn.Module):  # type: ignore[misc,name-defined]
        factor = 3.0

        def forward(self, values: Any) -> Any:
            return values * self.factor * self.config.scale * SETTINGS.scale

    whole, part = Layer(), Layer()
    part.config = SimpleNamespace(scale=1.0)
    whole.config = SimpleNamespace(text=part.config, scale=1.0)
    whole.part = part
    return whole


def nested_attribute(module: Any) -> None:
    module.part.config.scale = 5.0


def class_attribute(module: Any) -> None:
    type(module).factor = 4.0


def other_forward(module: Any) -> None:
    type(module).forward = lambda self, values: values


def global_object(module: Any) -> None:
    del module
    SETTINGS.scale += 1.0


@pytest.mark.parametrize(
    "change", [nested_attribute, class_attribute, other_forward, global_object]
)
def test_a_change_is_seen(change: Callable[[Any], None]) -> None:
    module = model()
    structure = structures.ModuleStructure([module])
    assert structure.unchanged()
    change(module)
    assert not structure.unchanged()


def test_tensors_within_vmap_are_of_another_kind() -> None:
    example = torch.ones(3)
    known, found = kinds.TensorKinds([example]), []

    def look(values: Any) -> Any:
        found.append(known.match([values]))
        return values

    torch.vmap(look)(torch.ones(2, 3))
    assert found == [False]
    assert known.match([torch.zeros(3)])
