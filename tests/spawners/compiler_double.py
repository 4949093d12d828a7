"""A package named torch whose compiler keeps files in a folder, as PyTorch does: quick to load."""

from __future__ import annotations

from pathlib import Path

_MODULES = {
    "torch/__init__.py": """
__version__ = "1.0"
def compile(source):
    import torch._dynamo
    from torch._inductor.compile_fx import compile_fx
    return compile_fx(source)
""",
    "torch/_dynamo.py": "",
    "torch/_inductor/__init__.py": "",
    "torch/_inductor/compile_fx.py": """
import os
import pathlib
import torch.compiler
def compile_fx(source):
    folder = pathlib.Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "shared-by-all"))
    file = folder / "fxgraph" / "aa" / source / "code"
    warm = file.exists()
    file.parent.mkdir(parents=True, exist_ok=True)
    if not warm:
        file.write_text("code")
    torch.compiler.compiled.append(source)
    return "warm" if warm else "cold"
""",
    "torch/compiler.py": """
import types
compiled = []
def save_cache_artifacts():
    if compiled:
        return b"", types.SimpleNamespace(artifacts={"inductor": compiled})
""",
}


def add_compiler(folder: Path) -> None:
    """Add the package to a folder from which a job imports."""
    for name, text in _MODULES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
