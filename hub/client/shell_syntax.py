"""Recognize what only a shell understands, in commands that run without one."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPERATORS = frozenset({"|", "||", "|&", "&&", "&", ">", ">>", "2>", "2>&1", "&>", "<", "<<"})
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)


def shell_syntax(words: Sequence[str]) -> str:
    """Return the first word that is an operator of shells; empty if there is none.

    A single word with blanks is a command line: there is no program of that name.
    """
    if len(words) == 1 and len(words[0].split()) > 1:
        return words[0]
    return next((word for word in words if word in _OPERATORS), "")


def unquoted_operator(line: str) -> str:
    """Return the first operator of shells in a command line that is not quoted; empty if none."""
    words = _QUOTED.sub("x", line).split()
    return next((word for word in words if word in _OPERATORS), "")
