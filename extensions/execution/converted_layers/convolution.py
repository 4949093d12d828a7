"""Small convolutions as sums of products, for which a compiler writes one loop."""

from __future__ import annotations

from typing import Any, Final

import torch

_MOST_FACTORS: Final = 144
"""Products in an element of the output. With so many, a call for one picture takes half the time
of a library for convolutions, and one for 32 pictures three times as long."""


class ProductConvolution(torch.nn.Conv2d):  # type: ignore[misc] # torch has no types here
    """What a layer of ``torch.nn.Conv2d`` computes, as products that are summed.

    Only for a compiler: without it, all products are in memory before they are summed.
    """

    def forward(self, inputs: Any) -> Any:
        if inputs.dim() == 3:  # noqa: PLR2004 # channels, height and width: one picture
            return self.forward(inputs.unsqueeze(0)).squeeze(0)
        (high, wide), (down, right) = self.padding, self.stride
        padded = torch.nn.functional.pad(inputs, (wide, wide, high, high))
        rows = _places(padded.shape[2], self.kernel_size[0], down, self.dilation[0])
        columns = _places(padded.shape[3], self.kernel_size[1], right, self.dilation[1])
        windows = torch.stack(
            [padded[:, :, row, column] for row in rows for column in columns], dim=2
        )
        products = windows.unsqueeze(1) * self.weight.flatten(2)[:, :, :, None, None]
        outputs = products.sum((2, 3))
        return outputs if self.bias is None else outputs + self.bias[:, None, None]


def _places(length: int, kernel: int, stride: int, dilation: int) -> list[slice]:
    """Return where each element of a kernel meets one dimension of padded inputs."""
    span = dilation * (kernel - 1)
    return [slice(start, length - span + start, stride) for start in range(0, span + 1, dilation)]


def convertible(layer: torch.nn.Module) -> bool:
    """Return whether a layer is a convolution that is small enough."""
    if type(layer) is not torch.nn.Conv2d:
        return False
    factors = layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1]
    return (
        layer.groups == 1
        and layer.padding_mode == "zeros"
        and not isinstance(layer.padding, str)
        and factors <= _MOST_FACTORS
    )


def as_products(model: torch.nn.Module) -> torch.nn.Module:
    """Convert the small convolutions of a model in place; return the model."""
    for layer in model.modules():
        if convertible(layer):
            layer.__class__ = ProductConvolution
    return model
