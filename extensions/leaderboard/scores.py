"""Score the weights of many students on hidden data, in one process.

On many examples the models are executed together by ``carrel.execution.fuse``, where that is
faster; on few one by one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from ...courses.leaderboards.weights_file import stored_tensors
from ...hub.errors import InvalidInput
from ..execution.fused_models import fuse
from ..execution.model_weights import models_of

ROWS: Final = 64
"""Examples of one call."""
FEWEST_CALLS: Final = 100
"""Calls of each model from which ``fuse`` is used: its choice takes as long as seven calls."""
_CHOICE_SECONDS: Final = 30.0
_DIGITS: Final = 6
_FEWEST_ROWS: Final = 2
_DTYPES: Final = {
    "F64": torch.float64,
    "F32": torch.float32,
    "F16": torch.float16,
    "BF16": torch.bfloat16,
    "I64": torch.int64,
    "I32": torch.int32,
    "I16": torch.int16,
    "I8": torch.int8,
    "U8": torch.uint8,
    "BOOL": torch.bool,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class HiddenTest:
    """What weights are scored on.

    Attributes:
        architecture: in evaluation mode.
        inputs, targets: one row for each example.
        metric: one of ``METRICS``.
        public_percent: the part of the rows for the public score; the others are private.
        seed: decides which rows are public.
    """

    architecture: torch.nn.Module
    inputs: torch.Tensor
    targets: torch.Tensor
    metric: str
    public_percent: int
    seed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class WeightsScore:
    """The scores of one file of weights, or the sentence why it has none."""

    public: float | None = None
    private: float | None = None
    problem: str = ""


def hidden_test(
    architecture: object, data: object, *, metric: str, public_percent: int, seed: int
) -> HiddenTest:
    """Check what the functions of ``leaderboard.py`` have returned. Raises InvalidInput."""
    if not isinstance(architecture, torch.nn.Module):
        raise InvalidInput("architecture() does not return a torch.nn.Module.")
    if not isinstance(data, tuple | list) or not _are_rows(*data):
        raise InvalidInput(
            "hidden_data() does not return inputs and targets: two tensors with one row for each "
            "example."
        )
    return HiddenTest(
        architecture=architecture.eval(),
        inputs=data[0],
        targets=data[1],
        metric=metric,
        public_percent=public_percent,
        seed=seed,
    )


def _are_rows(*data: object) -> bool:
    tensors = [each for each in data if isinstance(each, torch.Tensor) and each.dim()]
    counts = {len(each) for each in tensors}
    return len(data) == len(tensors) == len(("inputs", "targets")) and len(counts) == 1


def score(
    test: HiddenTest, contents: Mapping[str, bytes], *, together: bool = True
) -> dict[str, WeightsScore]:
    """Score files of weights, by name.

    Args:
        together: use ``carrel.execution.fuse`` on many examples; else execute one by one.

    Raises:
        InvalidInput: the architecture, the data and the metric do not fit together.
    """
    found: dict[str, WeightsScore] = {}
    models: dict[str, torch.nn.Module] = {}
    for name, content in contents.items():
        try:
            models[name] = _model(test.architecture, content)
        except InvalidInput as error:
            found[name] = WeightsScore(problem=f"{error.message} {error.accepted}".strip())
        except MemoryError:
            raise
        except Exception as error:  # of PyTorch, for bytes that the checks have not foreseen
            problem = f"The weights cannot be read: {type(error).__name__}."
            found[name] = WeightsScore(problem=problem)
    if models:
        public = public_rows(len(test.targets), test.public_percent, test.seed)
        for name, own in _values_by_name(test, models, together=together).items():
            found[name] = (
                WeightsScore(problem=own)
                if isinstance(own, str)
                else _score(own, public, test.metric)
            )
    return found


def _values_by_name(
    test: HiddenTest, models: Mapping[str, torch.nn.Module], *, together: bool
) -> dict[str, torch.Tensor | str]:
    """Return the values of each model, or the sentence why its weights have none.

    Raises whatever the architecture raises with its own weights.
    """
    try:
        return dict(zip(models, _values(test, [*models.values()], together=together), strict=True))
    except MemoryError:
        raise
    except Exception:
        _values(test, [test.architecture], together=False)
    return {name: _values_alone(test, model) for name, model in models.items()}


def _values_alone(test: HiddenTest, model: torch.nn.Module) -> torch.Tensor | str:
    try:
        (values,) = _values(test, [model], together=False)
    except MemoryError:
        raise
    except InvalidInput as error:  # the weights decide the shape of the outputs
        return f"With these weights: {error.message}"
    except Exception:
        return "The model fails on the hidden data."
    return values


def public_rows(count: int, percent: int, seed: int) -> torch.Tensor:
    """Return for each row whether it is public; at least one row is, and one is not.

    Raises InvalidInput for fewer than two rows.
    """
    if count < _FEWEST_ROWS:
        raise InvalidInput("The hidden data have fewer than two examples.")
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    public = torch.zeros(count, dtype=torch.bool)
    public[order[: min(count - 1, max(1, round(count * percent / 100)))]] = True
    return public


def _model(architecture: torch.nn.Module, content: bytes) -> torch.nn.Module:
    """Return a model with the weights of a file. Raises InvalidInput."""
    data = bytearray(content)
    state = {}
    for each in stored_tensors(content):
        dtype, size = _DTYPES[each.dtype], each.end - each.begin
        # A tensor starts anywhere in the file: bytes of its own are aligned for every dtype.
        raw = data[each.begin : each.end]
        flat = torch.frombuffer(raw, dtype=dtype) if size else torch.empty(0, dtype=dtype)
        state[each.name] = flat.reshape(each.shape)
    (model,) = models_of(architecture, [state], names=["the weights"])
    for name, tensor in state.items():
        if tensor.is_floating_point() and not bool(tensor.isfinite().all()):
            raise InvalidInput(f"{name} of the weights has NaN or infinite numbers.")
    return model


def _values(
    test: HiddenTest, models: Sequence[torch.nn.Module], *, together: bool
) -> list[torch.Tensor]:
    """Return for each model what the metric is the mean of: one number for each row."""
    chunks = range(0, len(test.targets), ROWS)
    execute: Callable[[torch.Tensor], list[Any]]
    if together and len(models) > 1 and len(chunks) >= FEWEST_CALLS:
        execute = fuse(
            models,
            classifier=test.metric == "accuracy",
            calls=len(chunks),
            seconds=_CHOICE_SECONDS,
        )
    else:

        def execute(inputs: torch.Tensor) -> list[Any]:
            return [model(inputs) for model in models]

    parts: list[list[torch.Tensor]] = [[] for _ in models]
    with torch.no_grad():
        for begin in chunks:
            targets = test.targets[begin : begin + ROWS]
            for own, output in zip(parts, execute(test.inputs[begin : begin + ROWS]), strict=True):
                own.append(METRICS[test.metric](_checked(output, targets), targets))
    return [torch.cat(own) for own in parts]


def _checked(output: Any, targets: torch.Tensor) -> torch.Tensor:
    if not isinstance(output, torch.Tensor) or len(output) != len(targets):
        raise InvalidInput(
            "The architecture does not return a tensor with one row for each example."
        )
    return output


def _accuracy(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    _check_dimensions("accuracy", output, targets, 1)
    right = output.argmax(-1) == targets
    # A model whose output is no number has no score, though argmax has a value.
    return right.double().where(output.isfinite().all(-1), float("nan"))


def _cross_entropy(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    _check_dimensions("cross-entropy", output, targets, 1)
    return torch.nn.functional.cross_entropy(output.double(), targets, reduction="none")


def _squared_error(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return _errors("rmse", output, targets).square().mean(1)


def _absolute_error(output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    return _errors("mae", output, targets).abs().mean(1)


def _errors(metric: str, output: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    if output.numel() != targets.numel():
        raise _no_fit(metric, output, targets)
    count = len(targets)
    return output.double().reshape(count, -1) - targets.double().reshape(count, -1)


def _check_dimensions(
    metric: str, output: torch.Tensor, targets: torch.Tensor, dimensions: int
) -> None:
    if targets.dim() != dimensions or output.dim() != dimensions + 1:
        raise _no_fit(metric, output, targets)


def _no_fit(metric: str, output: torch.Tensor, targets: torch.Tensor) -> InvalidInput:
    return InvalidInput(
        f"The metric {metric} cannot compare outputs of the shape {tuple(output.shape)} with "
        f"targets of the shape {tuple(targets.shape)}."
    )


METRICS: Final[Mapping[str, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]] = {
    "accuracy": _accuracy,
    "cross-entropy": _cross_entropy,
    "rmse": _squared_error,
    "mae": _absolute_error,
}


def _score(values: torch.Tensor, public: torch.Tensor, metric: str) -> WeightsScore:
    if not bool(values.isfinite().all()):
        return WeightsScore(problem="The outputs of the model have NaN or infinite numbers.")

    def mean(rows: torch.Tensor) -> float:
        found = float(values[rows].mean())
        return round(found**0.5 if metric == "rmse" else found, _DIGITS)

    if not math.isfinite(mean(public)) or not math.isfinite(mean(~public)):
        return WeightsScore(problem="The error of the model is too large for a number.")
    return WeightsScore(public=mean(public), private=mean(~public))
