"""What an analysis of a function finds."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field

import torch


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEffect:
    """A line that may have a side effect.

    Attributes:
        file: name of the source file, or of the cell of a notebook.
        line: from 1; 0 where the function is no line of Python that can be read.
        reason: what it may do, as a part of a sentence.
        rewrite: what to write instead; empty where there is no advice.
    """

    file: str
    line: int
    function: str
    reason: str
    rewrite: str = ""

    @property
    def source(self) -> str:
        return linecache.getline(self.file, self.line).strip() if self.line else ""


@dataclass(slots=True)
class FunctionPurity:
    """What the analysis of a function has found.

    Attributes:
        effects: in the order in which they were found; empty for a pure function.
        tensors: used beside the arguments.
        modules: used by the function.
    """

    effects: list[SideEffect] = field(default_factory=list)
    tensors: dict[int, torch.Tensor] = field(default_factory=dict)
    modules: dict[int, torch.nn.Module] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CodePlace:
    file: str
    line: int
    function: str
