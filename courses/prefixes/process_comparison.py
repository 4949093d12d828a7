"""Describe a process, so that two can be compared; runs inside the kernel.

The runner executes this file in the kernel as text, before ``kernel_side``: it needs only the
standard library. The service uses parts of it, too.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import sys
import types
from typing import Any

_MOST_FILES = 10_000


class PrefixDiffers(ValueError):
    """Why a prefix is not used."""


def check_profile(shell: Any) -> None:
    """Raise if IPython's profile runs code or has settings of the user's own."""
    profile = shell.profile_dir
    found = [
        name
        for name in (os.listdir(profile.startup_dir) if os.path.isdir(profile.startup_dir) else ())
        if name.endswith((".py", ".ipy"))
    ]
    files = [
        name for name in os.listdir(profile.location) if name.endswith(("_config.py", ".json"))
    ]
    if found or [name for name in files if name.startswith("ipython")]:
        raise PrefixDiffers("IPython has startup files or settings of your own")


def settings() -> dict[str, str]:
    """Return the settings of the process that a prefix needs to be the same, as digests."""
    import decimal  # noqa: PLC0415  # nothing else is loaded for a kernel
    import gc  # noqa: PLC0415
    import locale  # noqa: PLC0415
    import logging  # noqa: PLC0415
    import warnings  # noqa: PLC0415

    loaded = sys.modules
    found: dict[str, object] = {
        "warnings": [
            [
                rule[0],
                getattr(rule[1], "pattern", rule[1]),
                getattr(rule[2], "__name__", rule[2]),
                getattr(rule[3], "pattern", rule[3]),
                rule[4],
            ]
            for rule in warnings.filters
        ],
        "recursion limit": sys.getrecursionlimit(),
        "locale": locale.setlocale(locale.LC_ALL),
        "decimal": decimal.getcontext(),
        "garbage collection": (gc.isenabled(), gc.get_threshold()),
        "logging": (logging.root.level, len(logging.root.handlers), logging.root.manager.disable),
        "builtins": sorted(vars(loaded["builtins"])),
        "hooks": (sys.displayhook is sys.__displayhook__, len(sys.meta_path), len(sys.path_hooks)),
    }
    numpy: Any = loaded.get("numpy")
    if hasattr(numpy, "get_printoptions"):
        found["numpy"] = (numpy.get_printoptions(), numpy.geterr())
    config: Any = loaded.get("pandas._config.config")
    if hasattr(config, "_global_config"):
        found["pandas"] = config._global_config
    matplotlib: Any = loaded.get("matplotlib")
    if hasattr(matplotlib, "rcParams"):
        params = matplotlib.rcParams
        found["matplotlib"] = {str(k): repr(dict.__getitem__(params, k)) for k in dict.keys(params)}
    helpers: Any = loaded.get("matplotlib._pylab_helpers")
    if hasattr(helpers, "Gcf"):
        found["open figures"] = sorted(helpers.Gcf.figs)
    sklearn: Any = loaded.get("sklearn")
    if hasattr(sklearn, "get_config"):
        found["scikit-learn"] = sklearn.get_config()
    torch: Any = loaded.get("torch")
    if hasattr(torch, "get_default_dtype"):
        found["PyTorch"] = (
            torch.get_default_dtype(),
            torch.is_grad_enabled(),
            torch.get_num_threads(),
            torch.are_deterministic_algorithms_enabled(),
        )
    return {name: _digest(_text(value)) for name, value in found.items()}


def process() -> dict[str, str]:
    """Return what a restored cell must not change, although it differs between jobs."""
    return {
        name: _digest(repr(value))
        for name, value in {
            "sys.path": sys.path,
            "environment": sorted(os.environ.items()),
            "working folder": os.getcwd(),
        }.items()
    }


def _text(value: object) -> str:
    if isinstance(value, dict):
        return repr(sorted((str(key), _text(each)) for key, each in value.items()))
    if isinstance(value, list | tuple):
        return repr([_text(each) for each in value])
    if isinstance(value, set | frozenset):
        return repr(sorted(map(_text, value)))
    return re.sub(r" at 0x[0-9a-f]+", "", repr(value))


def warned() -> dict[str, str]:
    """Return which warnings Python does not show again, by module."""
    found = {}
    for name, module in list(sys.modules.items()):
        registry = getattr(module, "__dict__", {}).get("__warningregistry__")
        if registry and (shown := sorted(str(key) for key in registry if key != "version")):
            found[name] = _digest(repr(shown))
    return found


def packages() -> str:
    """Return a digest of the names and versions of the installed packages."""
    found = []
    for folder in sys.path:
        with contextlib.suppress(OSError):
            names = os.listdir(folder) if folder else []
            found += [name for name in names if name.endswith((".dist-info", ".egg-info", ".pth"))]
    return _digest(repr(sorted(found)))


def module_files(start: str) -> dict[str, str]:
    """Return the file of each module; those in the working folder relative to it."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name != "__main__":
            path = os.path.realpath(file)
            inside = path.startswith(start + os.sep)
            found[name] = os.path.relpath(path, start) if inside else path
    return found


def installation() -> tuple[str, ...]:
    site: Any = sys.modules.get("site")
    user = getattr(site, "USER_SITE", None)
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, *getattr(site, "PREFIXES", ())]
    return tuple(os.path.realpath(place) + os.sep for place in places if place and place != user)


def digests(folder: str) -> dict[str, str]:
    """Return the digest of each file below a folder, notebooks and hidden files left out."""
    found: dict[str, str] = {}
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            path = os.path.join(base, name)
            if name.startswith(".") or name.endswith(".ipynb") or not os.path.isfile(path):
                continue
            if len(found) >= _MOST_FILES:
                raise PrefixDiffers("the working folder has too many files")
            found[os.path.relpath(path, folder)] = sha256(path)
    return found


def listing(folder: str) -> str:
    """Return a digest of names, sizes and times of the files below a folder."""
    found = []
    for base, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(base, name)
            about = os.lstat(path)
            found.append((os.path.relpath(path, folder), about.st_size, about.st_mtime_ns))
            if len(found) > _MOST_FILES:
                raise PrefixDiffers("the data of the course has too many files")
    return _digest(repr(found))


def sha256(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


def install() -> None:
    globals()["get_ipython"]().kernel.carrel_comparison = types.SimpleNamespace(**globals())
