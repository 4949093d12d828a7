"""Functions, methods and kinds of values that are known to have no side effects."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator
from types import BuiltinFunctionType
from typing import Any, Final

import torch

PLAIN: Final = (
    int, float, complex, bool, str, bytes, type(None), type(...), slice, range,
    torch.dtype, torch.device, torch.Size, torch.layout, torch.memory_format,
)  # fmt: skip
CONTAINERS: Final = (list, tuple, dict, frozenset)
"""Containers that may come from outside; no sets, as ``add`` is a method of tensors, too."""
TENSORS: Final = (torch.Tensor, torch.nn.Parameter)
BUILTINS: Final = frozenset({
    abs, all, any, bool, complex, dict, divmod, enumerate, filter, float, frozenset, int,
    isinstance, iter, len, list, map, max, min, next, pow, range, repr, reversed, round, set, slice,
    sorted, str, sum, tuple, zip,
})  # fmt: skip
RANDOM: Final = frozenset({
    "alpha_dropout", "bernoulli", "binomial", "dropout", "dropout1d", "dropout2d", "dropout3d",
    "feature_alpha_dropout", "feature_dropout", "fractional_max_pool2d", "fractional_max_pool3d",
    "gumbel_softmax", "multi_head_attention_forward", "multinomial", "native_dropout", "normal",
    "poisson", "rand", "rand_like", "randint", "randint_like", "randn", "randn_like", "randperm",
    "pca_lowrank", "rrelu", "svd_lowrank",
    # In place, on any tensor:
    "bernoulli_", "cauchy_", "exponential_", "geometric_", "log_normal_", "normal_", "random_",
    "uniform_",
})  # fmt: skip
_NOT_PURE_OF_TORCH: Final = frozenset({
    "empty", "empty_like", "empty_permuted", "empty_strided", "from_file", "from_numpy",
    "frombuffer", "fused_moving_avg_obs_fake_quant", "gru", "lstm", "rnn_relu", "rnn_tanh",
})  # fmt: skip
# Functions with these parts of a name change running means.
_STATEFUL_PARTS: Final = ("batch_norm", "instance_norm")
DROPOUT: Final = (
    torch.nn.Dropout,
    torch.nn.Dropout1d,
    torch.nn.Dropout2d,
    torch.nn.Dropout3d,
    torch.nn.AlphaDropout,
    torch.nn.FeatureAlphaDropout,
)
CONTEXTS: Final = ("no_grad", "enable_grad")
# Their results share no memory with an argument.
NEW_TENSORS: Final = frozenset({
    "arange", "cat", "clone", "cos", "exp", "eye", "full", "full_like", "linspace", "log", "matmul",
    "mm", "ones", "ones_like", "relu", "sigmoid", "sin", "softmax", "sqrt", "stack", "tanh",
    "tensor", "zeros", "zeros_like",
})  # fmt: skip
NEW_OBJECTS: Final = frozenset({
    "bool", "dict", "float", "int", "len", "list", "range", "set", "sorted", "str",
})  # fmt: skip
CONTAINER_CHANGES: Final = frozenset({
    "append", "clear", "extend", "insert", "pop", "popitem", "remove", "reverse", "setdefault",
    "sort", "update",
})  # fmt: skip
_TENSOR_ATTRIBUTES: Final = frozenset({
    "shape", "dtype", "device", "T", "mT", "H", "mH", "real", "imag", "ndim", "requires_grad",
    "is_cuda", "itemsize", "layout",
})  # fmt: skip
_TENSOR_EXCLUDED: Final = frozenset({
    "apply", "backward", "bernoulli", "data_ptr", "detach", "map", "module_load", "multinomial",
    "numpy", "register_hook", "register_post_accumulate_grad_hook", "retain_grad", "storage",
    "type", "untyped_storage", "set", "new_empty", "new", "split_with_sizes", "reinforce", "resize",
    "resize_as", "pin_memory", "is_shared", "cuda",
})  # fmt: skip
_READING_NAMES: Final = frozenset(
    {name for name in dir(torch.Tensor) if not name.startswith("_") and not name.endswith("_")}
    - _TENSOR_EXCLUDED - CONTAINER_CHANGES
    | {"detach"} | _TENSOR_ATTRIBUTES
    | {name for kind in (str, int, float, tuple, range, slice) for name in dir(kind)}
    | {name for kind in (*CONTAINERS, set) for name in dir(kind) if name not in CONTAINER_CHANGES}
)  # fmt: skip
READERS: Final = frozenset(name for name in _READING_NAMES if not name.startswith("_")) - {"data"}
IN_PLACE: Final = frozenset(
    name for name in dir(torch.Tensor) if name.endswith("_") and not name.startswith("_")
) - {"set_", "requires_grad_", "share_memory_", "resize_", "resize_as_", "apply_", "map_", "map2_"}


def _functions_of(owner: Any, names: Iterable[str]) -> Iterator[Any]:
    for name in names:
        stateful = any(part in name for part in _STATEFUL_PARTS)
        if not name.startswith("_") and not name.endswith("_") and not stateful:
            value = getattr(owner, name, None)
            if callable(value) and not isinstance(value, type):
                yield value


def _allowed_objects() -> dict[int, Any]:
    functional = torch.nn.functional
    excluded = RANDOM | _NOT_PURE_OF_TORCH
    of_torch = {*dir(torch._C._VariableFunctions), *torch.functional.__all__} - excluded
    found: list[Any] = [
        *BUILTINS,
        *_functions_of(torch, of_torch),
        *_functions_of(functional, set(dir(functional)) - excluded),
        *_functions_of(torch.linalg, dir(torch.linalg)),
        *_functions_of(torch.fft, dir(torch.fft)),
        *_functions_of(torch.special, dir(torch.special)),
        *_functions_of(math, dir(math)),
        *_functions_of(operator, ("add", "mul", "sub", "truediv", "neg", "matmul", "getitem")),
        *(getattr(torch, name) for name in CONTEXTS),
        torch.tensor, torch.cond, torch.while_loop, torch.is_tensor, torch.is_floating_point,
        torch.finfo, torch.iinfo, torch.Tensor,
    ]  # fmt: skip
    return {id(each): each for each in found}


_ALLOWED: dict[int, Any] = {}


def is_allowed(value: Any) -> bool:
    if not _ALLOWED:
        _ALLOWED.update(_allowed_objects())
    known = _ALLOWED.get(id(value))
    if known is not None:
        return True
    return isinstance(value, type) and issubclass(value, Exception) and (
        value.__module__ == "builtins"
    )  # fmt: skip


def effect_of_torch(name: str) -> tuple[str, str]:
    if name in RANDOM:
        return f"{name} may draw random numbers", "Draw them before the call, and pass them."
    return f"calls torch's {name}, which is not known to have no side effects", ""


def effect_of_object(value: Any, name: str) -> tuple[str, str]:
    if value is print:
        return "print writes text", "Return what you print, and print it after the call."
    if isinstance(value, BuiltinFunctionType) and str(value.__module__) == "torch":
        return effect_of_torch(value.__name__)
    if getattr(value, "__name__", "") in RANDOM:
        return effect_of_torch(value.__name__)
    if isinstance(value, type) or callable(value):
        return f"calls {name}, which may have side effects", ""
    return f"uses {name} of the class {type(value).__name__}, which may run other code", ""
