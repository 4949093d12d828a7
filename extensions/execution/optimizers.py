"""Steps of optimizers whose arithmetic is by element, on the weights of many models at once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import torch

from ...hub.errors import InvalidInput
from .stacked_state import Tensors

OPTIMIZERS: Final = ("sgd", "adam", "adamw")
_MOMENTUM: Final = "momentum"
_MEAN: Final = "mean"
_SQUARE: Final = "square"


@dataclass(frozen=True, slots=True, kw_only=True)
class OptimizerSettings:
    """Settings of ``torch.optim.SGD``, ``Adam`` or ``AdamW``, with the defaults of SGD and Adam.

    Attributes:
        name: ``sgd``, ``adam`` or ``adamw``.
        momentum: of SGD.
        betas: of Adam and AdamW, as ``eps``.
        weight_decay: added to the gradient; by AdamW subtracted from the weights.
    """

    name: str = "sgd"
    momentum: float = 0.0
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    weight_decay: float = 0.0

    def __post_init__(self) -> None:
        if self.name not in OPTIMIZERS:
            raise InvalidInput(
                f"The optimizer {self.name!r} cannot be fused.",
                accepted=f"One of {', '.join(OPTIMIZERS)}.",
                field="optimizer",
            )

    def new_state(self, weights: Mapping[str, torch.Tensor]) -> dict[str, Tensors]:
        """Return the zeros from which an optimizer begins: for each kind, a tensor a weight."""
        kinds = (_MEAN, _SQUARE) if self.name != "sgd" else (_MOMENTUM,) if self.momentum else ()
        return {
            kind: {name: torch.zeros_like(weight) for name, weight in weights.items()}
            for kind in kinds
        }

    def apply(
        self,
        weights: Mapping[str, torch.Tensor],
        gradients: Mapping[str, torch.Tensor],
        state: Mapping[str, Tensors],
        rates: torch.Tensor,
        steps: torch.Tensor,
    ) -> None:
        """Change weights and state in place.

        Args:
            weights: by name; the first dimension is that of the models, as in all tensors here.
            rates: learning rate of each model.
            steps: number of this step for each model, from 1.
        """
        first, second = self.betas
        for name, weight in weights.items():
            # 0.999 is 1 in bfloat16: factors in float64, products at least in float32.
            wide = torch.promote_types(weight.dtype, torch.float32)
            shape = (-1, *(1,) * (weight.dim() - 1))
            rate, count = rates.double().view(shape), steps.double().view(shape)
            gradient = gradients[name]
            if self.weight_decay and self.name != "adamw":
                gradient = gradient + self.weight_decay * weight
            if self.name == "sgd":
                if self.momentum:
                    # Zeros times the momentum: the first step takes the gradient, as torch.optim.
                    momentum = state[_MOMENTUM][name]
                    gradient = momentum.mul_(self.momentum).add_(gradient)
                weight.sub_(rate.to(wide) * gradient)
                continue
            if self.weight_decay and self.name == "adamw":
                weight.mul_((1 - rate * self.weight_decay).to(wide))
            mean = state[_MEAN][name].mul_(first).add_(gradient, alpha=1 - first)
            square = (
                state[_SQUARE][name].mul_(second).addcmul_(gradient, gradient, value=1 - second)
            )
            deviation = (square / (1 - second**count).to(wide)).sqrt_().add_(self.eps)
            weight.sub_((rate / (1 - first**count)).to(wide) * mean / deviation)
