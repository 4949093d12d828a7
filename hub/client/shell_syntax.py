"""Recognize shell operators in commands that run without a shell."""

from __future__ import annotations

import re
from collections.abc import Sequence

_OPERATORS = frozenset({"|", "||", "|&", "&&", "&", ">", ">>", "2>", "2>&1", "&>", "<", "<<"})
_QUOTED = re.compile(r"""'[^']*'|"(?:\\.|[^"\\])*"|\\.""", re.DOTALL)


def shell_syntax(words: Sequence[str]) -> str:
    """Return the first word that is a shell operator; empty if there is none.

    A single word that contains blanks is returned whole: it is a command line, not a program.
    """
    if len(words) == 1 and len(words[0].split()) > 1:
        return words[0]
    return next((word for word in words if word in _OPERATORS), "")


def unquoted_operator(line: str) -> str:
    """Return the first shell operator outside of quotes in a command line; empty if none."""
    words = _QUOTED.sub("x", line).split()
    return next((word for word in words if word in _OPERATORS), "")
