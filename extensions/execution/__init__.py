"""Execute models faster with the same results: ``carrel.execution`` (extra ``carrel[execution]``).

Each function tries several ways to execute something on a sample, drops those whose results differ
from plain execution, and keeps the fastest. ``explain`` says which, and why.
"""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .accelerated import accelerate as accelerate
    from .captured import capture as capture
    from .choice import ExecutionChoice as ExecutionChoice
    from .deadlines.scheduler import DeadlineMissed as DeadlineMissed
    from .explanation import ExecutionExplanation as ExecutionExplanation
    from .explanation import explain as explain
    from .fused_models import fuse as fuse
    from .fused_trainer import fuse_train as fuse_train
    from .model_weights import models_of as models_of
    from .optimizers import OptimizerSettings as OptimizerSettings
    from .parallelized import parallelize as parallelize
    from .recursive import recursive as recursive
    from .scheduled import schedule as schedule
    from .shelf.shelf import Shelf as Shelf

_WITHOUT_TORCH: Final = {
    "DeadlineMissed": "deadlines.scheduler",
    "ExecutionChoice": "choice",
    "ExecutionExplanation": "explanation",
    "Shelf": "shelf.shelf",
    "explain": "explanation",
    "schedule": "scheduled",
}
_WITH_TORCH: Final = {
    "OptimizerSettings": "optimizers",
    "accelerate": "accelerated",
    "capture": "captured",
    "fuse": "fused_models",
    "fuse_train": "fused_trainer",
    "models_of": "model_weights",
    "parallelize": "parallelized",
    "recursive": "recursive",
}
"""Names → where they are made. Each is imported when it is first used: some need no PyTorch."""


def __getattr__(name: str) -> Any:
    module = _WITHOUT_TORCH.get(name) or _WITH_TORCH.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    if name in _WITH_TORCH and find_spec("torch") is None:
        raise ModuleNotFoundError(
            f"carrel.execution.{name} needs PyTorch. Install it with: pip install "
            "'carrel[execution]', or use the image torch.",
            name="torch",
        )
    value = getattr(import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WITH_TORCH, *_WITHOUT_TORCH})
