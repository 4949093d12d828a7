"""Record tensor computations of many independent calls, and execute equal ones as one batch.

While a function is recorded, a call of a module with tensors, and any function of torch on the
results, is not executed: it returns a ``DeferredTensor``. Equal calls whose arguments are at most
so many calls deep form a group; groups are executed by depth, each as one batch.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import torch
from torch.func import vmap
from torch.utils import _pytree as pytree

from ..purity import hooks_among
from .node_batch import IN_PLACE_OPERATORS, NoRowRule, execute_rows

_OPERATORS: Final = (
    "add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "rtruediv", "matmul", "rmatmul", "pow",
    "neg", "abs", "lt", "le", "gt", "ge", "eq", "ne", *IN_PLACE_OPERATORS, "setitem",
)  # fmt: skip
_IN_PLACE: Final = frozenset(f"__{name}__" for name in (*IN_PLACE_OPERATORS, "setitem"))
_BY_TEXT: Final = frozenset({slice, float, complex})
"""Constants that are not compared by value: a slice cannot be, and -0.0 equals 0.0."""


class NotBatchable(Exception):
    """The function needs the value of a tensor to go on; its text names the use."""


class UsesCaller(Exception):
    """A call needs a result of its caller, so that depths cannot be executed from the last one."""


class Recursion:
    """Where the recursion of one thread is.

    Attributes:
        depth: calls that have not returned.
        running: these calls, by their arguments; None unless cycles are looked for.
    """

    __slots__ = ("depth", "running")

    def __init__(self, *, find_cycles: bool) -> None:
        self.depth = 0
        self.running: set[tuple[int, ...]] | None = set() if find_cycles else None


class CallGroup:
    """Equal calls that do not need each other's results.

    Attributes:
        depth: of the recursion in which they are; infinite for those that need no other result.
        step: how many calls before them they need at this depth.
        calls: arguments of each call.
        outputs: of all calls, with a first dimension for them; None until it is executed.
    """

    __slots__ = ("calls", "depth", "function", "outputs", "step")

    def __init__(self, function: Callable[..., Any], depth: float, step: int) -> None:
        self.function = function
        self.depth = depth
        self.step = step
        self.calls: list[tuple[Any, ...]] = []
        self.outputs: Any = None


class DeferredTensor:
    """The result of a recorded call, or a part of it.

    Attributes:
        part: the path to the part in a result of several tensors.
    """

    __slots__ = ("group", "part", "recorder", "row")

    def __init__(
        self, recorder: CallRecorder, group: CallGroup, row: int, part: tuple[Any, ...] = ()
    ) -> None:
        self.recorder = recorder
        self.group = group
        self.row = row
        self.part = part

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """Refuse ``isinstance``, which a tensor would answer in another way; so does
        ``torch.autograd.Function.apply``, whose gradient would be lost."""
        raise NotBatchable("it asks for the type of a result (isinstance or autograd.Function)")

    @classmethod
    def __torch_function__(
        cls, function: Any, types: Any, args: Any = (), kwargs: Any = None
    ) -> Any:
        leaves = pytree.tree_leaves((args, kwargs))
        first = next(leaf for leaf in leaves if type(leaf) is cls)
        return first.recorder.record(function, args, kwargs)

    def __getattr__(self, name: str) -> Any:
        method = getattr(torch.Tensor, name)
        if not callable(method):
            raise NotBatchable(f"it reads .{name} of a result")
        return lambda *args, **kwargs: self.recorder.record(method, (self, *args), kwargs)

    def __iter__(self) -> Iterator[DeferredTensor]:
        example = self.recorder.example(self)
        if not isinstance(example, tuple | list):
            raise NotBatchable("it iterates over a tensor")
        return iter([self._part(index) for index in range(len(example))])

    def __getitem__(self, key: Any) -> Any:
        if isinstance(self.recorder.example(self), torch.Tensor):
            return self.recorder.record(torch.Tensor.__getitem__, (self, key), None)
        return self._part(key)

    def __bool__(self) -> bool:
        raise NotBatchable("a branch depends on the value of a tensor")

    def __len__(self) -> int:
        raise NotBatchable("it reads the length of a result")

    def _part(self, key: Any) -> DeferredTensor:
        return DeferredTensor(self.recorder, self.group, self.row, (*self.part, key))


def _operator(name: str) -> Callable[..., Any]:
    method = getattr(torch.Tensor, f"__{name}__")
    return lambda self, *others: self.recorder.record(method, (self, *others), None)


for _name in _OPERATORS:
    setattr(DeferredTensor, f"__{_name}__", _operator(_name))
# Operators make new results; a set of deferred tensors goes by identity, as that of tensors does.
DeferredTensor.__hash__ = object.__hash__  # type: ignore[method-assign]


class CallRecorder:
    """The recorded calls of one execution.

    Args:
        recursion: knows the depth. What a node needs of its children is then all at the next
            depth, so that a batch is made of few others. Calls are in batches by how many calls
            they need below them if it is None.
    """

    def __init__(self, recursion: Recursion | None) -> None:
        self._recursion = recursion
        self._groups: dict[Any, CallGroup] = {}
        self._functions: dict[Any, Callable[..., Any]] = {}
        self._examples: dict[CallGroup, Any] = {}

    def record(self, function: Any, args: tuple[Any, ...], kwargs: Any = None) -> DeferredTensor:
        """Add a call to the group of its kind.

        Raises:
            NotBatchable: an argument is neither a tensor nor a constant that can be compared, or
                the function writes to an argument.
            UsesCaller: an argument is a result of a call that has not returned.
        """
        depth = self._recursion.depth if self._recursion else 0
        step = -1
        kinds: list[Any] = []
        for arg in args:
            kind = type(arg)
            if kind is DeferredTensor:
                other = arg.group
                if other.depth > depth:
                    step = max(step, 0)
                elif other.depth == depth:
                    step = max(step, other.step + 1)
                else:
                    raise UsesCaller
                continue
            if kind is torch.Tensor:
                kinds.append((arg.shape, arg.dtype))
            elif kind is torch.nn.Parameter:
                kinds.append(id(arg))
            elif kind in (list, tuple, dict):
                return self.record(*self._flat(function, args, kwargs))
            else:
                kinds.append((kind, repr(arg) if kind in _BY_TEXT else arg))
        if kwargs:
            return self.record(*self._flat(function, args, kwargs))
        place = None if step < 0 else depth
        key = (function, place, step, len(args), tuple(kinds) if kinds else None)
        try:
            group = self._groups.get(key)
        except TypeError:
            raise NotBatchable(f"an argument of {_name_of(function)} cannot be compared") from None
        if group is None:
            _refuse(function)
            group = CallGroup(function, math.inf if step < 0 else depth, max(step, 0))
            self._groups[key] = group
        calls = group.calls
        calls.append(args)
        return DeferredTensor(self, group, len(calls) - 1)

    def example(self, deferred: DeferredTensor) -> Any:
        """Return a result of a call of the same group, executed alone, for its form."""
        group = deferred.group
        if group not in self._examples:
            with torch.no_grad():
                args = [
                    self.example(arg) if type(arg) is DeferredTensor else arg
                    for arg in group.calls[0]
                ]
                self._examples[group] = plain_call(group.function, *args)
        return _part_of(self._examples[group], deferred.part)

    def _flat(
        self, function: Any, args: tuple[Any, ...], kwargs: Any
    ) -> tuple[Callable[..., Any], tuple[Any, ...]]:
        if kwargs and (kwargs.get("out") is not None or kwargs.get("inplace")):
            raise NotBatchable(f"{_name_of(function)} writes to a tensor")
        leaves, form = pytree.tree_flatten((args, kwargs or {}))
        key = (function, form)
        if key not in self._functions:
            _refuse(function)

            def flat(*values: Any) -> Any:
                positional, named = pytree.tree_unflatten(values, form)
                return function(*positional, **named)

            self._functions[key] = flat
        return self._functions[key], tuple(leaves)

    def execute(self) -> None:
        """Execute all groups, the deepest first."""
        for group in sorted(self._groups.values(), key=lambda each: (-each.depth, each.step)):
            _execute(group)

    def values(self, results: Sequence[Any]) -> list[Any]:
        """Return results with tensors in the place of deferred ones; ends the recording."""
        leaves, form = pytree.tree_flatten(list(results))
        places = [place for place, leaf in enumerate(leaves) if type(leaf) is DeferredTensor]
        for source, members in _by_source([leaves[place] for place in places]).items():
            rows = [leaves[places[member]].row for member in members]
            tensors, inner = pytree.tree_flatten(_outputs(source))
            parts = [_rows(tensor, rows).unbind() for tensor in tensors]
            for number, member in enumerate(members):
                leaves[places[member]] = pytree.tree_unflatten(
                    [part[number] for part in parts], inner
                )
        for group in self._groups.values():
            group.calls, group.outputs = [], None
        found: list[Any] = pytree.tree_unflatten(leaves, form)
        return found


def _execute(group: CallGroup) -> None:
    first = group.calls[0]
    if len(group.calls) == 1:
        args = [_single(arg) if type(arg) is DeferredTensor else arg for arg in first]
        outputs = plain_call(group.function, *args)
        group.outputs = pytree.tree_map(lambda tensor: tensor.unsqueeze(0), outputs)
        return
    columns: list[Any] = []
    dimensions: list[int | None] = []
    joined: dict[Any, list[torch.Tensor]] = {}
    for place, arg in enumerate(first):
        if type(arg) is DeferredTensor:
            columns.append(_gather([call[place] for call in group.calls], joined))
        elif type(arg) is torch.Tensor:
            columns.append(torch.stack([call[place] for call in group.calls]))
        else:
            columns.append(arg)
            dimensions.append(None)
            continue
        dimensions.append(0)
    call = partial(plain_call, group.function)
    try:
        group.outputs = execute_rows(call, columns, [each == 0 for each in dimensions])
    # Whatever a function does that sees no tensor; vmap raises its own errors.
    except (Exception, NoRowRule):
        group.outputs = vmap(call, in_dims=tuple(dimensions))(*columns)


def _single(deferred: DeferredTensor) -> Any:
    outputs = _outputs((deferred.group, deferred.part))
    return pytree.tree_map(lambda tensor: tensor[deferred.row], outputs)


def _gather(deferred: Sequence[DeferredTensor], joined: dict[Any, list[torch.Tensor]]) -> Any:
    """Return the results of recorded calls, stacked; a result may hold several tensors.

    Args:
        joined: results of several groups in one tensor, for the next argument.
    """
    if any(each.part for each in deferred):
        firsts: dict[Any, int] = dict.fromkeys([(each.group, each.part) for each in deferred], 0)
        sources = list(firsts)
    else:
        firsts = dict.fromkeys([each.group for each in deferred], 0)
        sources = [(group, ()) for group in firsts]
    key = tuple(sources)
    flat = [pytree.tree_flatten(_outputs(source)) for source in sources]
    form = flat[0][1]
    if any(other != form for _, other in flat):
        raise NotBatchable("results of one kind of node have several forms")
    count = 0
    for source, (tensors, _) in zip(firsts, flat, strict=True):
        firsts[source] = count
        count += len(tensors[0])
    if key not in joined:
        columns = zip(*(tensors for tensors, _ in flat), strict=True)
        joined[key] = [torch.cat(column) if len(column) > 1 else column[0] for column in columns]
    if sources[0] in firsts:
        rows = [firsts[each.group, each.part] + each.row for each in deferred]
    else:
        rows = [firsts[each.group] + each.row for each in deferred]
    index = None if rows == list(range(count)) else torch.tensor(rows)
    batches = joined[key]
    if index is not None:
        index = index.to(batches[0].device)
        batches = [batch.index_select(0, index) for batch in batches]
    return pytree.tree_unflatten(batches, form)


def _rows(batch: torch.Tensor, rows: list[int]) -> torch.Tensor:
    if len(rows) == len(batch) and rows == list(range(len(rows))):
        return batch
    return batch.index_select(0, torch.tensor(rows, device=batch.device))


_Source = tuple[CallGroup, tuple[Any, ...]]


def _by_source(deferred: Sequence[DeferredTensor]) -> dict[_Source, list[int]]:
    found: dict[_Source, list[int]] = {}
    for member, each in enumerate(deferred):
        found.setdefault((each.group, each.part), []).append(member)
    return found


def _outputs(source: _Source) -> Any:
    group, part = source
    return _part_of(group.outputs, part)


def _part_of(value: Any, part: tuple[Any, ...]) -> Any:
    for key in part:
        value = value[key]
    return value


def _name_of(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)


# -- modules ----------------------------------------------------------------------------------

_active = threading.local()
_patch = threading.Lock()
_recording_threads = 0
_module_call = torch.nn.Module.__call__


def plain_call(function: Callable[..., Any], *args: Any) -> Any:
    """Call a function whose modules are executed, also while another function is recorded."""
    recorder, _active.recorder = getattr(_active, "recorder", None), None
    try:
        return function(*args)
    finally:
        _active.recorder = recorder


@contextmanager
def recorded_modules(recursion: Recursion | None) -> Iterator[CallRecorder]:
    """Record calls of modules with tensors in this thread.

    The method by which modules are called is exchanged meanwhile; in other threads it calls the
    original.
    """
    global _recording_threads  # noqa: PLW0603
    recorder = CallRecorder(recursion)
    with _patch:
        _recording_threads += 1
        torch.nn.Module.__call__ = _recorded_call
    _active.recorder = recorder
    try:
        yield recorder
    finally:
        _active.recorder = None
        with _patch:
            _recording_threads -= 1
            if not _recording_threads:
                torch.nn.Module.__call__ = _module_call


def _recorded_call(module: torch.nn.Module, *args: Any, **kwargs: Any) -> Any:
    recorder: CallRecorder | None = getattr(_active, "recorder", None)
    if recorder is None or not args:
        return _module_call(module, *args, **kwargs)
    for arg in args:
        kind = type(arg)
        if kind is not DeferredTensor and kind is not torch.Tensor and not _holds_tensors(arg):
            return _module_call(module, *args, **kwargs)
    return recorder.record(module, args, kwargs)


def _holds_tensors(arg: Any) -> bool:
    # Not isinstance: an object may name another class as its own.
    if issubclass(type(arg), torch.Tensor):
        return True
    return (
        issubclass(type(arg), tuple | list)
        and bool(arg)
        and all(type(each) is DeferredTensor or _holds_tensors(each) for each in arg)
    )


def _refuse(function: Any) -> None:
    """Raise NotBatchable for what writes to its arguments, and for modules with hooks."""
    if isinstance(function, torch.nn.Module):
        for module in function.modules():
            name = type(module).__name__
            if reason := hooks_among([module]):
                raise NotBatchable(reason)
            if getattr(module, "inplace", False):
                raise NotBatchable(f"{name} with inplace=True writes to a tensor")
        return
    name = _name_of(function)
    if name in _IN_PLACE or (name.endswith("_") and not name.endswith("__")):
        raise NotBatchable(f"{name} writes to a tensor")
