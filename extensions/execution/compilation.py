"""Compile functions with ``torch.compile``, and count what is compiled.

Dynamo compiles a function again for each new kind of input, and goes back to eager execution after
eight times with only a line in its log. Each function here has a limit of its own, and is used for
one kind of input; the count shows whether it was compiled at all.
"""

from __future__ import annotations

import linecache
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import torch

from ...hub.attempts import compile_cache_side
from ..runtime.report import VARIABLE
from . import package_cache

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
