"""Save the variables of a class's prefix, and restore them; runs inside the kernel.

The runner executes this file in the kernel as text (``kernel_code``), after ``snapshot_side``,
``process_comparison`` and ``shared_objects``: it needs only the standard library.

While the prefix is computed, an audit hook sees which files cells open. A run of cells can be
restored as long as they change no setting of the process, share no object with a module, and read
only the released files, the data of the course and the installation. Before variables are restored,
all of that is compared: versions, files, modules and settings must be those of the computation.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import pickle
import re
import sys
import threading
from typing import Any

SHORTEST_SECONDS = 0.1
"""A cell that took less is not worth a new file."""
LIMIT = 512 << 20
"""The most bytes of the saved variables."""
HEADER, PICKLE = "prefix.json", "prefix.pkl"
_REASON = 300
_OWN_NAMES = re.compile(r"_+|_i{0,3}\d*|_[io]h|_dh|_exit_code|__\w+__")
_HIDDEN = ("In", "Out", "exit", "quit", "get_ipython")
_SEEDS = re.compile(r"seed|set_?state|set_rng_state|RandomState", re.IGNORECASE)
_LAST = ("_", "__", "___")
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
        self._process, self._sharing = shell.kernel.carrel_comparison, shell.kernel.carrel_sharing
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
        with contextlib.suppress(self._process.PrefixDiffers):
            self._process.check_profile(self._shell)
            self._files = self._process.digests(self._start)
            self._roots = (*self._process.installation(), *_OUTSIDE)
            sys.addaudithook(self._audit)
            self._restart(0)
            return ""
        return "IPython has startup files, or the working folder too many files"

    def before(self) -> str:
        """Watch the cell that runs next."""
        self._problem, self._watched = "", True
        self._before = self._process.settings() | self._process.process()
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
        self._warned, self._modules = self._process.warned(), set(sys.modules)
        self._random = self._random_states()

    def _changed(self) -> str:
        now = self._process.settings() | self._process.process()
        before = self._before
        names = sorted(name for name in {*now, *before} if now.get(name) != before.get(name))
        added = {*sys.modules} - self._modules
        # Imports change settings, too: they are repeated, and then compared.
        process = [name for name in names if name in self._process.process() or not added]
        if process:
            return f"it changes a setting of the process ({process[0]})"
        if self._process.warned() != self._warned:
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
        if self._snapshots.device_is_open():
            raise self._process.PrefixDiffers(
                "the kernel uses a device, whose memory cannot be saved"
            )
        space = self._shell.user_ns
        shared = self._sharing.module_objects(
            {id(space), id(self._shell), id(vars(self._shell))}, self._process.installation()
        )
        memory = self._sharing.SharedMemory()

        def visit(found: object) -> None:
            if type(found).__name__ == "DisplayHandle":
                raise self._process.PrefixDiffers("a variable refers to an output")
            if id(found) in shared and self._sharing.is_mutable(found):
                raise self._process.PrefixDiffers(
                    f"a variable is part of the module {shared[id(found)][0]}"
                )
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
            "packages": self._process.packages(),
            "settings": self._process.settings(),
            "imports": self._imported(),
            "modules": self._process.module_files(self._start),
            "files": self._files,
            "data": self._data,
            "listing": self._process.listing(self._data) if self._data else "",
            "sha256": self._process.sha256(draft),
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
        except self._process.PrefixDiffers as error:
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
        if self._process.sha256(path) != header["sha256"]:
            raise self._process.PrefixDiffers("its file is damaged")
        with open(path, "rb") as file:
            saved: dict[str, Any] = self._snapshots.unpickled(file)
        return saved

    def _compare(self, header: dict[str, Any]) -> None:
        self._process.check_profile(self._shell)
        if header["python"] != sys.version or header["packages"] != self._process.packages():
            raise self._process.PrefixDiffers("Python or the installed packages are different")
        files = self._process.digests(self._start)
        for name, digest in header["files"].items():
            if files.get(name) != digest:
                raise self._process.PrefixDiffers(f"{name} is not the released file")
        if header["data"] and (
            header["data"] != self._data or header["listing"] != self._process.listing(self._data)
        ):
            raise self._process.PrefixDiffers("the data of the course has changed")
        # As in a cell, but what an import prints is not shown: no cell runs.
        with self._shell.builtin_trap:
            for name in header["imports"]:
                importlib.import_module(name)
        present = self._process.module_files(self._start)
        for name, file in header["modules"].items():
            if present.get(name, file) != file:
                raise self._process.PrefixDiffers(f"the module {name} is another file")
        settings = self._process.settings()
        for name in sorted({*settings, *header["settings"]}):
            if settings.get(name) != header["settings"].get(name):
                raise self._process.PrefixDiffers(f"a setting of the process is different ({name})")


def _is_importing() -> bool:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            return True
        frame = frame.f_back
    return False


def install(folder: str, data: str = "") -> None:
    shell = globals()["get_ipython"]()
    snapshots = shell.kernel.carrel_snapshots
    shell.kernel.carrel_prefix = ClassPrefix(shell, snapshots, folder, data)
