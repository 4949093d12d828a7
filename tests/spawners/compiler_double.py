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
    folder.mkdir(exist_ok=True)
    file = folder / source
    warm = file.exists()
    file.write_text("code")
    torch.compiler.compiled.append(source)
    return "warm" if warm else "cold"
""",
    "torch/compiler.py": """
import os
import pathlib
import types
compiled = []
def _info(names):
    return types.SimpleNamespace(artifacts={"inductor": names})
def save_cache_artifacts():
    return ("\\n".join(compiled).encode(), _info(compiled)) if compiled else None
def load_cache_artifacts(content):
    names = content.decode().split("\\n")
    for name in names:
        (pathlib.Path(os.environ["TORCHINDUCTOR_CACHE_DIR"]) / name).write_text("code")
    return _info(names)
""",
}


def add_compiler(folder: Path) -> None:
    """Add the package to a folder from which a job imports."""
    for name, text in _MODULES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
