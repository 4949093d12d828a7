"""The code that installs a module inside a Python kernel, which may be in another environment."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType


def installation(module: ModuleType, *arguments: object) -> str:
    """Return the code that executes a module in a kernel and calls its ``install``.

    The module runs in its own namespace, so that the notebook's stays unchanged.
    """
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    given = ", ".join(map(repr, arguments))
    return (
        f"exec(compile({source!r}, '<carrel>', 'exec'), "
        "(carrel_ := {'__name__': 'carrel_kernelside', 'get_ipython': get_ipython}))\n"
        f"carrel_['install']({given})\ndel carrel_"
    )
