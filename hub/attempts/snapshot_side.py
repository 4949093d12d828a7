"""Save the variables of a Python kernel after a cell, and load them; runs inside the kernel.

The runner of a job, and the server of a session, read this file as text and execute it in the
kernel (``kernel_code``): it needs only the standard library. With cloudpickle, functions and
classes of the notebook are saved as well.

A fork of the kernel writes the snapshot, so that the next cell does not wait. It is two files: the
pickle, and ``snapshot.json``, which names it and is replaced last, so that a snapshot is always
complete. ``snapshot.part`` exists from before the fork until all is written.

While the fork writes, each page that a cell changes is copied. After a snapshot that took t
seconds, the next one is due when cells have run for 100 t, so that 1 % of the time is lost; but for
no more than 5 s, or 20 t, so that little work is lost and at most 5 % of the time.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import io
import json
import mmap
import os
import pickle
import signal
import struct
import sys
import time
import types
import warnings
from typing import Any

UNSAVED_SECONDS = 0.1
"""Cells that took less together are not saved: they run again."""
PAUSE_FACTOR = 20.0
LONGER_PAUSE, LONGER_PAUSE_SECONDS = 5.0, 5.0
"""The pause is so many times as long, up to so many seconds."""
LIMIT = 2 << 30
"""The most bytes of a snapshot."""
LONGEST_SECONDS = 600
"""A fork that takes longer is killed: it waits for a lock that no thread of it releases, or pickles
a value whose own method does not return."""
_REASON = 200
_DEVICE_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")
_HIDDEN = ("In", "Out", "exit", "quit", "get_ipython")


class SnapshotTooLarge(Exception):
    """The snapshot is larger than the limit."""


class _Bounded(io.RawIOBase):
    def __init__(self, file: Any, limit: int) -> None:
        self._file, self._left = file, limit

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        size = len(memoryview(data).cast("B"))
        self._left -= size
        if self._left < 0:
            raise SnapshotTooLarge
        self._file.write(data)
        return size


class Snapshots:
    """Saves and loads the variables of a shell.

    Attributes:
        folder: where snapshots are written.
        start: the working folder at the start of a job; the present one is saved relative to it.
        limit: the most bytes of one.
        longest: whole seconds after which it is given up.
        pause_factor: how many times as long as the last snapshot cells run until the next one.
        clock: returns seconds, the same in a fork.
    """

    def __init__(self, shell: Any, folder: str, start: str = "", limit: int = LIMIT) -> None:
        self._shell = shell
        self.folder = folder
        self.limit = limit
        self.longest = LONGEST_SECONDS
        self.pause_factor = PAUSE_FACTOR
        self.clock = time.monotonic
        self._start = start or os.getcwd()
        self._mark = os.path.join(folder, "snapshot.part")
        self._child = 0
        self._count = 0
        self._began = 0.0
        self._unsaved = 0.0
        self._took = 0.0
        self._reported = mmap.mmap(-1, 8)
        """The duration of a snapshot, from the fork that has written it."""

    def take(self, index: int, number: int, seconds: float, now: bool = False) -> None:
        """Save the variables after a cell, unless little has happened or a snapshot is written.

        Args:
            index: of the cell in the executed notebook.
            number: of the cell, as users count; 0 for injected parameters.
            seconds: how long the cell took.
            now: whether the kernel ends soon: save in any case, and return when all is written.
        """
        self._unsaved += seconds
        if now:
            self._wait()
            if self._unsaved:
                self.begin(index, number)
                self._wait()
        elif not self.is_writing() and self._unsaved >= self._pause():
            self.begin(index, number)

    def begin(self, index: int, number: int) -> str:
        """Let a fork save the variables; return why not as a sentence, or nothing."""
        if self.device_is_open():
            return "the kernel uses a device, whose memory cannot be saved"
        if _spark_runs():
            return "the kernel uses Spark, whose Java process holds the data"
        self._unsaved, self._began = 0.0, self.clock()
        self._report(0.0)
        self._count += 1
        path = os.path.join(self.folder, f"snapshot-{self._count}.pkl")
        random = _random_states()  # a fork seeds its generator anew
        try:
            open(self._mark, "w").close()
            file = open(path, "wb")  # noqa: SIM115  # closed in both processes
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._child = os.fork()
        except OSError as error:
            _remove(self._mark)
            return str(error)
        if self._child:
            file.close()
            return ""
        status = 1
        try:
            # Signals to the kernel's group stop its cell, not this.
            os.setpgid(0, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(self.longest)
            sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115
            os.nice(10)
            self._write(file, index, number, random)
            status = 0
        finally:
            if status:
                _remove(path)
            self._report(self.clock() - self._began)
            _remove(self._mark)
            os._exit(status)

    def device_is_open(self) -> bool:
        """Whether a device is in use, whose memory a fork does not have."""
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}").startswith(_DEVICE_FILES):
                    return True
        return False

    def executed(self) -> str:
        """Return a digest of each executed cell by its execution count, as JSON."""
        sources = self._shell.history_manager.input_hist_raw
        return json.dumps({n: digest(source) for n, source in enumerate(sources) if n})

    def load(self, path: str) -> str:
        """Load a pickle; return the problem as a sentence, or nothing."""
        try:
            with open(path, "rb") as file:
                saved = _unpickled(file, self._shell.user_ns)
        except Exception as error:
            return f"{type(error).__name__}: {error}"[:_REASON]
        for entry in saved["path"]:
            if entry not in sys.path:
                sys.path.append(entry)
        with contextlib.suppress(OSError):
            os.chdir(os.path.join(self._start, saved["folder"]))
        _set_random_states(saved["random"])
        self._shell.user_ns.update(saved["variables"])
        return ""

    def is_writing(self) -> bool:
        """Whether a fork still writes a snapshot."""
        # One that has removed the mark only has to exit.
        return not self._has_ended(os.WNOHANG if os.path.exists(self._mark) else 0)

    def _wait(self) -> None:
        self._has_ended(0)

    def _has_ended(self, options: int) -> bool:
        if self._child:
            with contextlib.suppress(ChildProcessError):
                if os.waitpid(self._child, options) == (0, 0):
                    return False
            self._child = 0
            _remove(self._mark)  # it may have been killed
            (reported,) = struct.unpack("d", self._reported[:])
            self._took = reported or self.clock() - self._began
        return True

    def _pause(self) -> float:
        """Return how many seconds cells run until they are saved."""
        pause = self.pause_factor * self._took
        return max(UNSAVED_SECONDS, pause, min(LONGER_PAUSE * pause, LONGER_PAUSE_SECONDS))

    def _report(self, seconds: float) -> None:
        self._reported[:] = struct.pack("d", seconds)

    def _write(self, file: Any, index: int, number: int, random: dict[str, Any]) -> None:
        space = self._shell.user_ns
        hidden = self._shell.user_ns_hidden
        variables = {
            name: value
            for name, value in space.items()
            if not name.startswith("_") and name not in _HIDDEN and name not in hidden
        }
        state = {
            "path": list(sys.path),
            "folder": os.path.relpath(os.getcwd(), self._start),
            "random": random,
        }
        left_out: dict[str, str] = {}
        try:
            self._pickle(file, {**state, "variables": variables})
        except SnapshotTooLarge:
            raise
        except Exception:
            # Some variable cannot be saved: find out which.
            with open(os.devnull, "wb") as nowhere:
                for name in list(variables):
                    try:
                        self._pickle(nowhere, variables[name])
                    except Exception as error:
                        left_out[name] = f"{type(error).__name__}: {error}"[:_REASON]
                        del variables[name]
            file.seek(0)
            file.truncate()
            self._pickle(file, {**state, "variables": variables})
        file.flush()
        os.fsync(file.fileno())
        file.close()
        name = os.path.basename(file.name)
        header = {
            "file": name,
            "index": index,
            "number": number,
            "python": list(sys.version_info[:2]),
            "left_out": left_out,
        }
        draft = os.path.join(self.folder, "snapshot.json.part")
        with open(draft, "w", encoding="utf-8") as text:
            json.dump(header, text)
        os.rename(draft, os.path.join(self.folder, "snapshot.json"))
        for found in os.listdir(self.folder):
            if found.startswith("snapshot-") and found.endswith(".pkl") and found != name:
                os.unlink(os.path.join(self.folder, found))

    def _pickle(self, file: Any, value: object) -> None:
        self.dump(file, value, limit=self.limit)

    def dump(
        self, file: Any, value: object, *, limit: int, visit: Any = None, reduce: Any = None
    ) -> None:
        """Pickle a value of the notebook.

        Args:
            visit: called with each object.
            reduce: returns how an object is pickled, as ``__reduce__`` does; None: as usual.
        """
        space = self._shell.user_ns
        pickler_class: Any = pickle.Pickler
        with contextlib.suppress(ImportError):
            pickler_class = importlib.import_module("cloudpickle").Pickler

        class Pickler(pickler_class):  # type: ignore[misc]  # found at run time
            def persistent_id(self, found: object) -> str | None:
                if found is space:
                    return "variables"
                if visit is not None:
                    visit(found)
                return None

            def reducer_override(self, found: object) -> Any:
                made = None if reduce is None else reduce(found)
                if made is not None:
                    return made
                usual = getattr(super(), "reducer_override", None)
                return NotImplemented if usual is None else usual(found)

        pickler = Pickler(_Bounded(file, limit), protocol=pickle.HIGHEST_PROTOCOL)
        if hasattr(pickler, "globals_ref"):
            # Functions of the notebook refer to its variables, not to a copy of them.
            pickler.globals_ref[id(space)] = space
        pickler.dump(value)

    def unpickled(self, file: Any) -> Any:
        """Return what ``dump`` has written."""
        return _unpickled(file, self._shell.user_ns)

    def random_states(self) -> dict[str, Any]:
        """Return the states of the random generators that are loaded."""
        return _random_states()

    def set_random_states(self, states: dict[str, Any]) -> None:
        """Set the states of some or all random generators."""
        _set_random_states(states)


def _spark_runs() -> bool:
    """Whether this kernel has connections to Spark's Java process.

    A fork shares them: what it asks Java while it pickles, the kernel would read as its own answer.
    """
    context = getattr(sys.modules.get("pyspark"), "SparkContext", None)
    return getattr(context, "_gateway", None) is not None


def _remove(path: str) -> None:
    with contextlib.suppress(OSError):
        os.unlink(path)


def digest(source: str) -> str:
    """Return a digest of the source of a cell, as the kernel keeps it."""
    return hashlib.sha256(source.rstrip("\n").encode("utf-8", "replace")).hexdigest()[:16]


def _unpickled(file: Any, space: dict[str, Any]) -> Any:
    class Unpickler(pickle.Unpickler):
        def persistent_load(self, name: str) -> Any:
            return space

    return Unpickler(file).load()


def _random_states() -> dict[str, Any]:
    states: dict[str, Any] = {"random": importlib.import_module("random").getstate()}
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        states["numpy"] = numpy.get_state()
    torch: Any = sys.modules.get("torch")
    if isinstance(torch, types.ModuleType):
        states["torch"] = torch.get_rng_state().numpy().tobytes()
    return states


def _set_random_states(states: dict[str, Any]) -> None:
    if "random" in states:
        importlib.import_module("random").setstate(states["random"])
    if "numpy" in states:
        importlib.import_module("numpy.random").set_state(states["numpy"])
    if "torch" in states:
        torch: Any = importlib.import_module("torch")
        state = torch.frombuffer(bytearray(states["torch"]), dtype=torch.uint8)
        torch.set_rng_state(state)


def install(folder: str, start: str = "") -> None:
    with contextlib.suppress(AttributeError, KeyError):
        shell = globals()["get_ipython"]()
        if (before := getattr(shell.kernel, "carrel_snapshots", None)) is not None:
            before.is_writing()  # collects a process that has ended
        shell.kernel.carrel_snapshots = Snapshots(shell, folder, start)
