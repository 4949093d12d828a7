"""Compile functions with ``torch.compile``, and count what is compiled; or ahead of time.

Dynamo compiles a function again for each new kind of input, and goes back to eager execution after
eight times with only a line in its log. Each function here has a limit of its own, and is used for
one kind of input; the count shows whether it was compiled at all.

What ``torch.export`` and AOTInductor have compiled is called without Python between the operations,
and without guards: who calls it compares the kinds of its arguments (``TensorKinds``).
"""

from __future__ import annotations

import linecache
import os
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from ...hub.attempts import compile_cache_side
from ...hub.errors import InvalidInput
from ..runtime.report import VARIABLE
from . import package_cache

_AHEAD_ON_PROCESSORS: Final[Mapping[str, object]] = {
    # Each matrix product by a loop of its own or by a library, whichever is faster: products of
    # small matrices take less time than the call of a library.
    "max_autotune_gemm": True,
    "max_autotune_gemm_backends": "CPP,ATEN",
    # Without reports on the error output.
    "max_autotune_report_choices_stats": False,
    "autotune_num_choices_displayed": 0,
}
_RESUMED: Final = re.compile(r"^torch_dynamo_resume_in_(.+)_at_\d+$")


def use_own_cache() -> None:
    """Let the compiler keep its files where only the user writes, unless the user chose a folder.

    Its default is below the folder for temporary files, with a name that others can guess. In a job
    with a compile cache it is the folder of that.

    Raises:
        PermissionError: the folder belongs to another user, or others may write to it.
    """
    reports = os.environ.get(VARIABLE)
    if reports and compile_cache_side.begin_in_program(os.path.dirname(reports)):
        return
    if "TORCHINDUCTOR_CACHE_DIR" not in os.environ:
        os.environ["TORCHINDUCTOR_CACHE_DIR"] = str(package_cache.inductor_folder())


@dataclass(frozen=True, slots=True, kw_only=True)
class GraphBreak:
    """A line at which the compiler ended a graph, as it needs Python to go on."""

    file: str
    line: int
    function: str
    reason: str

    @property
    def source(self) -> str:
        return linecache.getline(self.file, self.line).strip()

    @classmethod
    def of(cls, reason: Any) -> GraphBreak | None:
        """Return the break that ended a graph; None if it is the end of the function.

        Args:
            reason: ``GraphCompileReason`` of dynamo.
        """
        if reason is None or not reason.graph_break or not reason.user_stack:
            return None
        frame = reason.user_stack[-1]
        resumed = _RESUMED.match(frame.name)
        return cls(
            file=frame.filename,
            line=frame.lineno or 0,
            function=resumed[1] if resumed else frame.name,
            reason=str(reason.reason).split("\n", 1)[0],
        )


class CountedCompilation:
    """A compiled function that counts its graphs.

    Attributes:
        graphs: compiled so far; a graph break makes two of one function.
        breaks: the lines at which graphs were broken.
    """

    def __init__(self, function: Callable[..., Any], *, fullgraph: bool = True) -> None:
        self.graphs = 0
        self.breaks: dict[GraphBreak, None] = {}
        use_own_cache()
        # Other functions with the same code (one closure made twice) have a limit of their own.
        self._compiled = torch.compile(
            function, backend=self._backend, fullgraph=fullgraph, isolate_recompiles=True
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._compiled(*args, **kwargs)

    def _backend(self, graph: Any, inputs: Sequence[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx  # noqa: PLC0415 # the same

        self.graphs += 1
        if found := GraphBreak.of(getattr(graph, "compile_subgraph_reason", None)):
            self.breaks[found] = None
        return compile_fx(graph, inputs)


def compiled_program(program: Any) -> Callable[..., Any]:
    """Load the package of an exported program of tensors, or build it; return what executes it.

    Raises:
        InvalidInput: the program uses tensors that are no arguments: a package would copy them.
    """
    from torch import _inductor  # noqa: PLC0415 # imports take seconds

    if program.constants or program.state_dict:
        raise InvalidInput("The function uses tensors that are neither arguments nor weights.")
    devices = {
        each.meta["val"].device.type
        for each in program.graph.find_nodes(op="placeholder")
        if isinstance(each.meta.get("val"), torch.Tensor)
    }
    options = _AHEAD_ON_PROCESSORS if devices <= {"cpu"} else {}
    key = package_cache.content_key(program, options)
    path = package_cache.find(key)
    if path is not None:
        try:
            return _loaded(path)
        except Exception as error:  # truncated, without its library, or of another loader
            package_cache.discard(path, error)
    use_own_cache()

    def build(target: str) -> None:
        with warnings.catch_warnings():  # the compiler calls what is deprecated
            warnings.simplefilter("ignore")
            _inductor.aoti_compile_and_package(
                program,
                package_path=target,
                inductor_configs=dict(options),  # the compiler adds to them
            )

    return _loaded(package_cache.store(key, build))


def _loaded(path: Path) -> Callable[..., Any]:
    """Return what executes a package, called with tensors."""
    from torch import _inductor  # noqa: PLC0415 # imports take seconds

    loader = _inductor.aoti_load_package(str(path)).loader
    # A call of the package itself reads the form of the results from text each time.
    form = pytree.treespec_loads(loader.get_call_spec()[1])
    run = loader.run
    if form.is_leaf():
        return lambda *tensors: run(list(tensors))[0]
    return lambda *tensors: pytree.tree_unflatten(run(list(tensors)), form)


class ProgramCompilation:
    """A function of tensors that is compiled ahead of time at its first call.

    Later calls have tensors of the same kinds. What cannot be exported is compiled by
    ``torch.compile``.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._execute: Callable[..., Any] | None = None

    def __call__(self, *tensors: torch.Tensor) -> Any:
        if self._execute is None:
            self._execute = self._compiled(tensors)
        return self._execute(*tensors)

    def _compiled(self, tensors: tuple[torch.Tensor, ...]) -> Callable[..., Any]:
        try:
            execute = compiled_program(torch.export.export(module_of(self._function), tensors))
            execute(*tensors)
        except Exception:  # compilers raise errors of many kinds
            return CountedCompilation(self._function)
        return execute


def module_of(function: Callable[..., Any]) -> torch.nn.Module:
    """Return what ``torch.export`` takes in the place of a function."""
    module = torch.nn.Module()
    module.forward = function
    return module
