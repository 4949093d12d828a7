"""Save the variables of a class's prefix, and restore them; runs inside the kernel.

The runner executes this file in the kernel as text (``kernel_code``), after ``snapshot_side``,
whose pickler it uses: it needs only the standard library.

While the prefix is computed, an audit hook sees which files cells open. A run of cells can be
restored as long as they change no setting of the process, share no object with a module, and read
only the released files, the data of the course and the installation. Before variables are restored,
all of that is compared: versions, files, modules and settings must be those of the computation.
"""

from __future__ import annotations

import collections
import contextlib
import enum
import hashlib
import importlib
import json
import os
import pickle
import re
import sys
import threading
import types
from typing import Any

SHORTEST_SECONDS = 0.1
"""A cell that took less is not worth a new file."""
LIMIT = 512 << 20
"""The most bytes of the saved variables."""
HEADER, PICKLE = "prefix.json", "prefix.pkl"
_MOST_FILES = 10_000
_REASON = 300
_OWN_NAMES = re.compile(r"_+|_i{0,3}\d*|_[io]h|_dh|_exit_code|__\w+__")
_HIDDEN = ("In", "Out", "exit", "quit", "get_ipython")
_SEEDS = re.compile(r"seed|set_?state|set_rng_state|RandomState", re.IGNORECASE)
_LAST = ("_", "__", "___")
_KERNEL_MODULES = (
    "IPython", "ipykernel", "traitlets", "jupyter_client", "jupyter_core", "zmq", "tornado",
    "asyncio", "ipywidgets", "comm", "debugpy", "carrel", "linecache", "threading", "__main__",
)  # fmt: skip
"""Modules that know the notebook itself."""
_OUTSIDE = ("/usr/", "/lib/", "/lib64/", "/etc/", "/proc/", "/sys/", "/dev/")
_OPENS = ("open",)
_LISTS = ("os.listdir", "os.scandir", "glob.glob", "glob.glob/2")
_EFFECTS = (
    "os.chdir", "os.putenv", "os.unsetenv", "os.system", "os.exec", "os.posix_spawn", "os.fork",
    "os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.chmod", "os.link",
    "os.symlink", "subprocess.Popen", "socket.connect", "socket.getaddrinfo", "sqlite3.connect",
    "shutil.copyfile", "shutil.move", "shutil.rmtree", "tempfile.mkstemp", "tempfile.mkdtemp",
    "signal.pthread_kill", "urllib.Request", "builtins.input",
)  # fmt: skip


class _Different(ValueError):
    """Why the prefix is not used."""


class ClassPrefix:
    """Saves or restores the prefix of a class in one kernel.

    Attributes:
        shell: of IPython.
        snapshots: of ``snapshot_side``, which pickles.
        folder: of the attempt.
        start: the working folder.
        data: the data folder of the course, empty if the prefix does not read it.
    """

    def __init__(self, shell: Any, snapshots: Any, folder: str, data: str) -> None:
        self._shell, self._snapshots, self._folder = shell, snapshots, folder
        self._start, self._data = os.path.realpath(os.getcwd()), data and os.path.realpath(data)
        self._thread = threading.get_ident()
        self._watched = False
        self._problem = ""
        self._first, self._seconds, self._best = 0, 0.0, 0.0
        self._before: dict[str, str] = {}
        self._warned: dict[str, str] = {}
        self._random: dict[str, Any] = {}
        self._modules: set[str] = set()
        self._files: dict[str, str] = {}

    # -- computing ------------------------------------------------------------------------

    def begin(self) -> str:
        """Prepare the computation; return why it is not possible as a sentence, or nothing."""
        with contextlib.suppress(_Different):
            _check_profile(self._shell)
            self._files = _digests(self._start)
            self._roots = (*_installation(), *_OUTSIDE)
            sys.addaudithook(self._audit)
            self._restart(0)
            return ""
        return "IPython has startup files, or the working folder too many files"

    def before(self) -> str:
        """Watch the cell that runs next."""
        self._problem, self._watched = "", True
        self._before = _settings() | _process()
        return ""

    def after(self, index: int, seconds: float, runs: str) -> str:
        """Save the variables after a cell, if that saves more than before.

        Args:
            index: of the cell in the notebook.
            seconds: how long it took.
            runs: why the cell cannot be restored, if that is known.

        Returns:
            why it is not restored, or nothing.
        """
        self._watched = False
        problem = runs or self._problem or self._changed()
        if problem:
            self._restart(index + 1)
            return problem
        self._seconds += seconds
        if not _SEEDS.search(self._shell.history_manager.input_hist_raw[-1]):
            # A generator that was loaded just now has a state of its own in each job.
            self._random = self._random_states() | self._random
        if seconds < SHORTEST_SECONDS or self._seconds <= self._best:
            return ""
        try:
            self._save(index + 1)
        except Exception as error:
            return f"its variables cannot be saved: {type(error).__name__}: {error}"[:_REASON]
        self._best = self._seconds
        return ""

    def _restart(self, index: int) -> None:
        self._first, self._seconds = index, 0.0
        self._warned, self._modules = _warned(), set(sys.modules)
        self._random = self._random_states()

    def _changed(self) -> str:
        now = _settings() | _process()
        before = self._before
        names = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        added = {*sys.modules} - self._modules
        # Imports change settings, too: they are repeated, and then compared.
        process = [name for name in names if name in _process() or not added]
        if process:
            return f"it changes a setting of the process ({process[0]})"
        if _warned() != self._warned:
            return "it showed a warning, which Python shows only once"
        return ""

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self._watched or self._problem or threading.get_ident() != self._thread:
            return
        if event in _OPENS:
            what = self._opened(arguments)
        elif event in _LISTS:
            what = self._listed(arguments)
        else:
            what = f"it uses {event}" if event in _EFFECTS else ""
        if what and not _is_importing():
            self._problem = what

    def _opened(self, arguments: tuple[Any, ...]) -> str:
        path, mode, flags = (*arguments, None, None, None)[:3]
        if isinstance(path, int) or path is None:
            return ""
        name = os.path.realpath(os.fsdecode(path))
        if name == os.devnull:
            return ""
        writes = isinstance(mode, str) and set(mode) & set("wax+")
        if writes or (isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)):
            return f"it writes {name}"
        relative = os.path.relpath(name, self._start)
        if relative in self._files or self._is_data(name) or name.startswith(self._roots):
            return ""
        return f"it reads {name}, which is not a released file"

    def _listed(self, arguments: tuple[Any, ...]) -> str:
        path = arguments[0] if arguments else "."
        if isinstance(path, int):
            return ""
        name = os.path.realpath(os.fsdecode("." if path is None else path)) + os.sep
        if self._is_data(name) or name.startswith(self._roots):
            return ""
        return f"it lists {name}"

    def _is_data(self, name: str) -> bool:
        return bool(self._data) and (name + os.sep).startswith(self._data + os.sep)

    def _save(self, cells: int) -> None:
        if _device_is_open():
            raise _Different("the kernel uses a device, whose memory cannot be saved")
        space = self._shell.user_ns
        shared = _module_objects({id(space), id(self._shell), id(vars(self._shell))})
        memory = _SharedMemory()

        def visit(found: object) -> None:
            if type(found).__name__ == "DisplayHandle":
                raise _Different("a variable refers to an output")
            if id(found) in shared and _is_mutable(found):
                raise _Different(f"a variable is part of the module {shared[id(found)]}")
            memory.add(found)

        now = self._random_states()
        state = {
            "variables": self._variables(),
            "out": dict(self._shell.user_ns["Out"]),
            "last": {name: space.get(name) for name in _LAST},
            "inputs": (
                list(self._shell.history_manager.input_hist_parsed),
                list(self._shell.history_manager.input_hist_raw),
            ),
            "count": self._shell.execution_count,
            # Others are those of the job itself, which may not be seeded.
            "random": {
                name: value
                for name, value in now.items()
                if pickle.dumps(value) != pickle.dumps(self._random.get(name))
            },
        }
        draft = os.path.join(self._folder, f"{PICKLE}.part")
        with open(os.devnull, "wb") as nowhere:
            self._snapshots.dump(nowhere, state, limit=LIMIT, visit=visit)
        memory.check()
        with open(draft, "wb") as file:
            self._snapshots.dump(file, state, limit=LIMIT, reduce=memory.reduced)
        header = {
            "first": self._first,
            "cells": cells,
            "seconds": self._seconds,
            "python": sys.version,
            "packages": packages(),
            "settings": _settings(),
            "imports": self._imported(),
            "modules": _module_files(self._start),
            "files": self._files,
            "data": self._data,
            "listing": listing(self._data) if self._data else "",
            "sha256": _sha256(draft),
        }
        os.replace(draft, os.path.join(self._folder, PICKLE))
        text = os.path.join(self._folder, f"{HEADER}.part")
        with open(text, "w", encoding="utf-8") as output:
            json.dump(header, output)
        os.replace(text, os.path.join(self._folder, HEADER))

    def _variables(self) -> dict[str, Any]:
        hidden = self._shell.user_ns_hidden
        return {
            name: value
            for name, value in self._shell.user_ns.items()
            if not _OWN_NAMES.fullmatch(name) and name not in _HIDDEN and name not in hidden
        }

    def _imported(self) -> list[str]:
        """Return the modules that were imported since the first cell to restore, in order."""
        added = []
        for name, module in list(sys.modules.items()):
            spec = getattr(module, "__spec__", None)
            if name not in self._modules and spec is not None and not name.startswith("carrel"):
                added.append(name)
        return added

    def _random_states(self) -> dict[str, Any]:
        states: dict[str, Any] = dict(self._snapshots.random_states())
        return states

    # -- restoring ------------------------------------------------------------------------

    def restore(self) -> str:
        """Load the variables; return why that is not possible as a sentence, or nothing.

        Nothing is changed if it is not, apart from imported modules.
        """
        try:
            with open(os.path.join(self._folder, HEADER), encoding="utf-8") as text:
                header = json.load(text)
            self._compare(header)
            saved = self._loaded(header)
        except _Different as error:
            return str(error)[:_REASON]
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:_REASON]
        shell, space = self._shell, self._shell.user_ns
        space.update(saved["variables"])
        shell.user_ns["Out"].clear()
        shell.user_ns["Out"].update(saved["out"])
        for name, value in saved["last"].items():
            space[name] = value
            setattr(shell.displayhook, name, value)
        space.update({f"_{number}": value for number, value in saved["out"].items()})
        history = shell.history_manager
        history.input_hist_parsed[:], history.input_hist_raw[:] = saved["inputs"]
        shell.execution_count = saved["count"]
        self._snapshots.set_random_states(saved["random"])
        return ""

    def _loaded(self, header: dict[str, Any]) -> dict[str, Any]:
        path = os.path.join(self._folder, PICKLE)
        if _sha256(path) != header["sha256"]:
            raise _Different("its file is damaged")
        with open(path, "rb") as file:
            saved: dict[str, Any] = self._snapshots.unpickled(file)
        return saved

    def _compare(self, header: dict[str, Any]) -> None:
        _check_profile(self._shell)
        if header["python"] != sys.version or header["packages"] != packages():
            raise _Different("Python or the installed packages are different")
        files = _digests(self._start)
        for name, digest in header["files"].items():
            if files.get(name) != digest:
                raise _Different(f"{name} is not the released file")
        if header["data"] and (
            header["data"] != self._data or header["listing"] != listing(self._data)
        ):
            raise _Different("the data of the course has changed")
        # As in a cell, but what an import prints is not shown: no cell runs.
        with self._shell.builtin_trap:
            for name in header["imports"]:
                importlib.import_module(name)
        present = _module_files(self._start)
        for name, file in header["modules"].items():
            if present.get(name, file) != file:
                raise _Different(f"the module {name} is another file")
        settings = _settings()
        for name in sorted({*settings, *header["settings"]}):
            if settings.get(name) != header["settings"].get(name):
                raise _Different(f"a setting of the process is different ({name})")


# -- what is compared -------------------------------------------------------------------------


def _check_profile(shell: Any) -> None:
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
        raise _Different("IPython has startup files or settings of your own")


def _settings() -> dict[str, str]:
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


def _process() -> dict[str, str]:
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


def _warned() -> dict[str, str]:
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


def _module_files(start: str) -> dict[str, str]:
    """Return the file of each module; those in the working folder relative to it."""
    found = {}
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and name != "__main__":
            path = os.path.realpath(file)
            inside = path.startswith(start + os.sep)
            found[name] = os.path.relpath(path, start) if inside else path
    return found


def _installation() -> tuple[str, ...]:
    site: Any = sys.modules.get("site")
    user = getattr(site, "USER_SITE", None)
    places = [sys.prefix, sys.base_prefix, sys.exec_prefix, *getattr(site, "PREFIXES", ())]
    return tuple(os.path.realpath(place) + os.sep for place in places if place and place != user)


def _digests(folder: str) -> dict[str, str]:
    """Return the digest of each file below a folder, notebooks and hidden files left out."""
    found: dict[str, str] = {}
    for base, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "__pycache__")))
        for name in sorted(names):
            path = os.path.join(base, name)
            if name.startswith(".") or name.endswith(".ipynb") or not os.path.isfile(path):
                continue
            if len(found) >= _MOST_FILES:
                raise _Different("the working folder has too many files")
            found[os.path.relpath(path, folder)] = _sha256(path)
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
                raise _Different("the data of the course has too many files")
    return _digest(repr(found))


def _sha256(path: str) -> str:
    found = hashlib.sha256()
    with open(path, "rb") as file:
        while piece := file.read(1 << 20):
            found.update(piece)
    return found.hexdigest()


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "replace")).hexdigest()[:16]


# -- objects that modules know ----------------------------------------------------------------


def _module_objects(skipped: set[int]) -> dict[int, str]:
    """Return the name of a module for each object that modules reach through plain containers.

    Attributes of classes count for modules that are not installed: libraries have constants there.
    """
    installed = _installation()
    found: dict[int, str] = {}
    seen = set(skipped)
    for name, module in list(sys.modules.items()):
        if not isinstance(module, types.ModuleType) or id(vars(module)) in skipped:
            continue
        if name.partition(".")[0] in _KERNEL_MODULES:
            continue
        file = getattr(module, "__file__", None) or ""
        classes = bool(file) and not os.path.realpath(file).startswith(installed)
        stack = [each for key, each in list(vars(module).items()) if not key.startswith("__")]
        while stack:
            value = stack.pop()
            if id(value) in seen or isinstance(value, types.ModuleType):
                continue
            if isinstance(value, type) and not classes:
                continue  # another module may still count its attributes
            seen.add(id(value))
            stack += _parts(value)
            if not isinstance(value, type):
                found[id(value)] = name
    return found


def _parts(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*list(dict.keys(value)), *list(dict.values(value))]
    if isinstance(value, list | tuple | set | frozenset | collections.deque):
        return list(value)
    if isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.MethodType):
        return []
    try:
        return list(vars(value).values())
    except TypeError:
        return []


def _is_mutable(found: object) -> bool:
    if isinstance(found, type | types.FunctionType | types.ModuleType | enum.Enum):
        return False
    if callable(found) and hasattr(found, "__qualname__"):
        return False  # a function of compiled code, which is pickled by its name
    plain = isinstance(found, dict | list | set | bytearray | collections.deque)
    return plain or hasattr(found, "__dict__") or type(found).__name__ == "ndarray"


class _SharedMemory:
    """Keeps arrays that share memory doing so, which pickle does not.

    Tables of pandas that copy on write are pickled apart: neither sees what changes in the other.
    """

    def __init__(self) -> None:
        self._arrays: dict[int, Any] = {}
        self._tables: set[int] = set()
        self._storages: dict[int, Any] = {}
        self._tensors: dict[int, Any] = {}
        self._flat: dict[int, tuple[Any, int]] = {}

    def add(self, found: Any) -> None:
        numpy: Any = sys.modules.get("numpy")
        torch: Any = sys.modules.get("torch")
        if numpy is not None and isinstance(found, numpy.ndarray):
            self._arrays[id(found)] = found
        elif torch is not None and isinstance(found, getattr(torch, "Tensor", ())):
            tensor: Any = found
            if id(found) not in self._tensors:
                self._tensors[id(found)] = found
                place = tensor.untyped_storage().data_ptr()
                if place and self._storages.setdefault(place, found) is not found:
                    raise _Different("two tensors share memory")
        elif hasattr(found, "_mgr") and type(found).__module__.partition(".")[0] == "pandas":
            for block in getattr(found._mgr, "blocks", ()):
                self._tables.add(id(block.values))
                self._arrays.setdefault(id(block.values), block.values)

    def check(self) -> None:
        """Prepare arrays that share memory; raise if that cannot be kept."""
        numpy: Any = sys.modules.get("numpy")
        if numpy is None:
            return
        bounds: Any = importlib.import_module(
            "numpy.lib.array_utils" if hasattr(numpy.lib, "array_utils") else "numpy"
        ).byte_bounds
        spans = sorted(
            (*bounds(array), number)
            for number, array in self._arrays.items()
            if isinstance(array, numpy.ndarray) and array.nbytes
        )
        group: list[int] = []
        end = 0
        for low, high, number in spans:
            if low >= end:
                self._keep(group)
                group = []
            group.append(number)
            end = max(end, high)
        self._keep(group)
        places = [(low, high) for low, high, _ in spans]
        for place in self._storages:
            if any(low <= place < high for low, high in places):
                raise _Different("an array and a tensor share memory")

    def _keep(self, group: list[int]) -> None:
        if len(group) < 2:  # noqa: PLR2004
            return
        tables = [number for number in group if number in self._tables]
        if len(tables) == len(group) and _copies_on_write():
            return
        numpy: Any = sys.modules["numpy"]
        arrays = [self._arrays[number] for number in group]
        roots = {id(root): root for root in map(_root, arrays)}
        root = next(iter(roots.values()))
        plain = all(type(each) is numpy.ndarray and not each.dtype.hasobject for each in arrays)
        contiguous = root.flags.c_contiguous or root.flags.f_contiguous
        writeable = all(each.flags.writeable for each in arrays)
        if tables or len(roots) > 1 or not (plain and contiguous and writeable):
            raise _Different("two variables share memory")
        flat = root.ravel(order="K").view("u1")
        start = root.__array_interface__["data"][0]
        for number, array in zip(group, arrays, strict=True):
            self._flat[number] = flat, array.__array_interface__["data"][0] - start

    def reduced(self, found: Any) -> Any:
        """Return how an array is pickled that shares memory: as a view of all of that."""
        if id(found) not in self._flat:
            return None
        flat, offset = self._flat[id(found)]
        numpy: Any = sys.modules["numpy"]
        return numpy.ndarray, (found.shape, found.dtype, flat, offset, found.strides)


def _root(array: Any) -> Any:
    while isinstance(array.base, type(array)):
        array = array.base
    return array


def _copies_on_write() -> bool:
    """Whether a change of a table of pandas is never seen in another one."""
    pandas: Any = sys.modules.get("pandas")
    return pandas is not None and int(pandas.__version__.partition(".")[0]) >= 3  # noqa: PLR2004


def _is_importing() -> bool:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


_DEVICE_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")


def _device_is_open() -> bool:
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(_DEVICE_FILES):
                return True
    return False


def install(folder: str, data: str = "") -> None:
    shell = globals()["get_ipython"]()
    snapshots = shell.kernel.carrel_snapshots
    shell.kernel.carrel_prefix = ClassPrefix(shell, snapshots, folder, data)
