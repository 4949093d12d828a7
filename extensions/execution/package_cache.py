"""Compiled packages of the user, kept by the content of what was compiled.

A package is native code. Only what the user's own processes wrote is loaded: files and folder must
be the user's, and not writable for others.
"""

from __future__ import annotations

import hashlib
import os
import platform
import stat
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch.utils import _pytree as pytree


def folder() -> Path:
    """Return the folder of the packages."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "carrel" / "execution"


def content_key(exported: Any, options: Mapping[str, object] | None = None) -> str:
    """Return the name of the package of an exported program.

    It depends on the program with its shapes and weights, on the version of PyTorch, the options
    of the compiler and the number of threads, and on the features of the processor or GPU. Weights
    are part of a package: the compiler computes with small ones.
    """
    digest = hashlib.sha256()
    graphs = {
        name: module.graph
        for name, module in exported.graph_module.named_modules()
        if isinstance(module, torch.fx.GraphModule)
    }
    # Branches and loops are graphs of their own.
    nodes = (
        f"{name} {each.format_node()} {each.args} {each.kwargs} {_kinds(each.meta.get('val'))}"
        for name, graph in graphs.items()
        for each in graph.nodes
    )
    program = "\n".join([*nodes, str(exported.graph_signature)])
    settings = f"{sorted((options or {}).items())} {torch.get_num_threads()}"
    for part in (program, settings, torch.__version__, platform.machine(), _processor(), _gpu()):
        digest.update(part.encode() + b"\0")
    for name, weight in sorted(exported.state_dict.items()):
        digest.update(name.encode())
        content = weight.detach().cpu().contiguous().reshape(-1).view(torch.uint8)
        digest.update(content.numpy().tobytes())
    return digest.hexdigest()


def _kinds(value: Any) -> list[Any]:
    """Return what a package is made for, of each tensor of a value; other parts as they are."""
    return [
        (tuple(leaf.shape), leaf.stride(), leaf.dtype, leaf.device)
        if isinstance(leaf, torch.Tensor)
        else leaf
        for leaf in pytree.tree_leaves(value)
    ]


def inductor_folder() -> Path:
    """Return the folder of the compiler's own files, which are native code, too.

    Raises:
        PermissionError: the folder belongs to another user, or others may write to it.
    """
    return _own_folder(_own_folder(folder()) / "inductor")


def find(key: str) -> Path | None:
    """Return a package that may be loaded."""
    path = folder() / f"{key}.pt2"
    return path if _own(path.parent) and _own(path) else None


def store(key: str, build: Callable[[str], object]) -> Path:
    """Build a package and keep it.

    Args:
        build: writes the package to a path.

    Raises:
        PermissionError: the folder belongs to another user, or others may write to it.
    """
    target = _own_folder(folder())
    with tempfile.TemporaryDirectory(dir=target) as place:
        made = Path(place) / "package.pt2"
        build(str(made))
        made.chmod(0o600)
        return made.replace(target / f"{key}.pt2")


def _own_folder(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not _own(path):
        raise PermissionError(f"{path} is not the user's own, or others may write to it")
    return path


def _own(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    shared = found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    return found.st_uid == os.geteuid() and not shared and not stat.S_ISLNK(found.st_mode)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").split("\n")
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _gpu() -> str:
    if not torch.cuda.is_available():
        return ""
    return str(torch.cuda.get_device_capability())
