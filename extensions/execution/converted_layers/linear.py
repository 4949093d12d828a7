"""Small linear layers as sums of products, for which a compiler writes one loop."""

from __future__ import annotations

from typing import Any, Final

import torch

_MOST_FACTORS: Final = 256
"""Products in an element of the output."""


class ProductLinear(torch.nn.Linear):  # type: ignore[misc] # torch has no types here
    """What a layer of ``torch.nn.Linear`` computes, as products that are summed.

    Only for a compiler: without it, all products are in memory before they are summed.
    """

    def forward(self, inputs: Any) -> Any:
        outputs = (inputs.unsqueeze(-2) * self.weight).sum(-1)
        return outputs if self.bias is None else outputs + self.bias


def convertible(layer: torch.nn.Module) -> bool:
    """Return whether a layer is a linear one that is small enough."""
    return type(layer) is torch.nn.Linear and layer.in_features <= _MOST_FACTORS


def as_products(model: torch.nn.Module) -> torch.nn.Module:
    """Convert the small linear layers of a model in place; return the model."""
    for layer in model.modules():
        if convertible(layer):
            layer.__class__ = ProductLinear
    return model
