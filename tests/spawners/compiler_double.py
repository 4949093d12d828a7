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
    "torch/_inductor/codecache.py": """
import os
import pathlib
class FxGraphCache:
    @staticmethod
    def file(source):
        folder = pathlib.Path(os.environ.get("TORCHINDUCTOR_CACHE_DIR", "shared-by-all"))
        return folder / "fxgraph" / "aa" / source / "code"
    @staticmethod
    def load_with_key(source):
        file = FxGraphCache.file(source)
        if not file.exists():
            return None
        if file.read_text() != "code":
            raise ImportError(f"{file}: undefined symbol")
        return "warm"
""",
    "torch/_inductor/compile_fx.py": """
import torch.compiler
from torch._inductor.codecache import FxGraphCache
def compile_fx(source):
    torch.compiler.compiled.append(source)
    found = FxGraphCache.load_with_key(source)
    if found is None:
        file = FxGraphCache.file(source)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("code")
    return found or "cold"
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
