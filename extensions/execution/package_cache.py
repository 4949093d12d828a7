"""Compiled packages of the user, kept by the content of what was compiled.

A package is native code. Only what the user's own processes wrote is loaded: files and folder must
be the user's, and not writable for others.

The folder is bounded: when a package is kept, those that were not used for longest are removed.
Several processes may do so at once: a package that another one has removed is built again, and one
that is in use was read wholly when it was loaded.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import torch
from torch.utils import _pytree as pytree

from .purity.tensor_kinds import execution_modes

BYTES_VARIABLE: Final = "CARREL_EXECUTION_CACHE_BYTES"
BYTES: Final = 1 << 30
"""Most bytes of all packages, unless the variable says."""
_WRITTEN: Final = "aot_inductor.metadata"
"""What a compilation writes into the configuration of its process."""
_ABANDONED_SECONDS: Final = 24 * 3600.0
_BUILD: Final = "build-"


def folder() -> Path:
    """Return the folder of the packages."""
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "carrel" / "execution"


def content_key(exported: Any, options: Mapping[str, object] | None = None) -> str:
    """Return the name of the package of an exported program, whose tensors are all arguments.

    It depends on the program with its shapes and the structure of its arguments and results, on the
    version of PyTorch, the options and configuration of the compiler, the modes of PyTorch, the
    number of threads, and on the features of the processor or GPU.
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
    call = exported.call_spec
    program = "\n".join([*nodes, str(exported.graph_signature), f"{call.in_spec} {call.out_spec}"])
    settings = (
        f"{sorted((options or {}).items())} {_configuration()} {execution_modes()} "
        f"{torch.get_num_threads()}"
    )
    for part in (program, settings, torch.__version__, platform.machine(), _processor(), _gpu()):
        digest.update(part.encode() + b"\0")
    return digest.hexdigest()


def _configuration() -> list[Any]:
    """Return how the compiler is configured, beside the options of one program."""
    from torch._inductor import config  # noqa: PLC0415 # imports take seconds

    every = config.save_config_portable()
    return sorted((name, value) for name, value in every.items() if name != _WRITTEN)


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
    """Return a package that may be loaded, and note that it was used."""
    path = folder() / f"{key}.pt2"
    if not (_own(path.parent) and _own(path)):
        return None
    with suppress(OSError):  # another process has removed it, or the file system is read-only
        os.utime(path)
    return path


def discard(path: Path, error: Exception) -> None:
    """Remove a package that cannot be loaded, and warn."""
    with suppress(OSError):
        path.unlink(missing_ok=True)
    warnings.warn(
        f"The compiled package {path.name} cannot be loaded ({type(error).__name__}: "
        f"{next(iter(str(error).splitlines()), '')}). It is built again.",
        stacklevel=2,
    )


def store(key: str, build: Callable[[str], object]) -> Path:
    """Build a package and keep it.

    Args:
        build: writes the package to a path.

    Raises:
        PermissionError: the folder belongs to another user, or others may write to it.
    """
    target = _own_folder(folder())
    with tempfile.TemporaryDirectory(dir=target, prefix=_BUILD) as place:
        made = Path(place) / "package.pt2"
        build(str(made))
        made.chmod(0o600)
        kept = made.replace(target / f"{key}.pt2")
    _remove_old(target, kept)
    return kept


def most_bytes() -> int:
    """Return how many bytes of packages are kept."""
    given = os.environ.get(BYTES_VARIABLE, "")
    return int(given) if given.isdecimal() else BYTES


def _remove_old(target: Path, newest: Path) -> None:
    """Remove the packages that were not used for longest, and what killed builds have left."""
    packages = {}
    for path in target.iterdir():
        with suppress(OSError):  # another process has removed it
            found = path.lstat()
            if path.name.startswith(_BUILD) and stat.S_ISDIR(found.st_mode):
                if time.time() - found.st_mtime > _ABANDONED_SECONDS:
                    shutil.rmtree(path, ignore_errors=True)
            elif path.suffix == ".pt2":
                packages[path] = found
    size = sum(found.st_size for found in packages.values())
    for path in sorted(packages, key=lambda each: packages[each].st_mtime_ns):
        if size <= most_bytes():
            return
        if path != newest:
            path.unlink(missing_ok=True)
            size -= packages[path].st_size


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
