"""Fork a Python kernel that has run some cells into further kernels; runs inside the kernel.

The runner of a sweep reads this file as text and executes it in the kernel (``kernel_code``): it
needs only the standard library and what the kernel has. A fork is a kernel of its own, with a
connection file of its own, and all variables of its parent, copied on write. Only the main thread
survives a fork, so that the application with its sockets and threads is built anew; the shell, with
its variables, history and hooks, stays.

Its parent has to stay until the fork has ended: the fork is killed with it.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import contextvars
import ctypes
import json
import os
import random
import signal
import sys
import threading
import warnings
from typing import Any

_DEVICE_FILES = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")
_SET_DEATH_SIGNAL = 1  # linux/prctl.h
_PAUSE_HARD = 2  # omp.h
_CONTROL_SECONDS = 0.5
NOT_FORKED = ("polars", "tensorflow", "jax", "ray", "pyspark", "grpc")
"""Modules with threads of their own that a fork waits for in vain."""
_TOLERATED = ("TMonitor", "Timer", "HistorySavingThread")
"""Classes of threads that are not missed in a fork: of tqdm, of the message limits, of IPython."""


class Branches:
    """Forks of one kernel.

    Attributes:
        kept: objects of the parents of this process, which must not be freed: their sockets and
            event loops share descriptors with those of the parents.
        streams: former ``sys.stdout`` and ``sys.stderr``, to which loggers may still refer.
    """

    def __init__(self, shell: Any) -> None:
        self._shell = shell
        if hasattr(shell, "enable_tip"):
            shell.enable_tip = False  # IPython chooses one with the generator that notebooks seed
        self._threads = set(threading.enumerate())
        self._children: dict[int, int | None] = {}
        """Exit status by process ID; None for a fork that runs."""
        self.kept: list[Any] = []
        self.streams: dict[str, list[Any]] = {"stdout": [], "stderr": []}

    def fork(self, connection_file: str, environment: dict[str, str], fresh: bool) -> str:
        """Fork a kernel; return ``{"pid": …}``, or ``{"problem": …}``, as JSON.

        Args:
            environment: variables to set in the fork.
            fresh: whether the fork has random numbers of its own, as a new process would.
        """
        self._collect()
        problem = self.problem()
        if problem:
            return json.dumps({"problem": problem})
        sys.stdout.flush()
        sys.stderr.flush()
        state = None if fresh else random.getstate()
        loop = asyncio.get_event_loop()
        parent = os.getpid()
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                child = os.fork()
        except OSError as error:
            return json.dumps({"problem": str(error)})
        if child:
            self._children[child] = None
            return json.dumps({"pid": child})
        try:
            os.setsid()
            ctypes.CDLL(None).prctl(_SET_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
            if os.getppid() == parent:
                os.environ.update(environment)
                self.kept.append(loop)
                contextvars.Context().run(self._run, connection_file, state)
        except BaseException as error:  # the frames of the parent end here
            os.write(2, f"carrel: the fork of the kernel failed: {error!r}\n".encode())
        finally:
            os._exit(1)

    def problem(self) -> str:
        """Return why this kernel cannot be forked, or nothing."""
        for descriptor in os.listdir("/proc/self/fd"):
            with contextlib.suppress(OSError):
                if os.readlink(f"/proc/self/fd/{descriptor}").startswith(_DEVICE_FILES):
                    return "it uses a device, whose memory a fork does not have"
        for name in NOT_FORKED:
            if name in sys.modules:
                return f"the threads of {name} would end in a fork"
        for thread in threading.enumerate():
            if thread not in self._threads and type(thread).__name__ not in _TOLERATED:
                return f"its thread {thread.name} would end in a fork"
        if not _pause_openmp():
            return "threads of OpenMP run"
        return ""

    def _collect(self) -> None:
        """Collect the exit status of forks that have ended."""
        for child, status in list(self._children.items()):
            if status is None:
                with contextlib.suppress(ChildProcessError):
                    pid, found = os.waitpid(child, os.WNOHANG)
                    if pid:
                        self._children[child] = os.waitstatus_to_exitcode(found)

    def exit_of(self, pid: int) -> int | None:
        """Return the exit status of a fork, or None."""
        self._collect()
        return self._children.get(pid)

    # -- in the fork ----------------------------------------------------------------------

    def _run(self, connection_file: str, state: Any) -> None:
        before = self._shell.kernel.parent
        self._children.clear()
        self.kept += [before, self._shell.kernel]
        asyncio.set_event_loop(asyncio.new_event_loop())
        old = {name: getattr(sys, name) for name in self.streams}
        for number, name in ((1, "stdout"), (2, "stderr")):
            self.streams[name].append(old[name])
            original = getattr(old[name], "_original_stdstream_copy", None)
            if original is not None:
                os.dup2(original, number)
            setattr(sys, name, getattr(sys, f"__{name}__"))
        for handler in (before.close, before.iopub_thread.stop, before.cleanup_connection_file):
            atexit.unregister(handler)
        self._shell.history_manager.enabled = False  # its thread and its database stay behind
        application = self._application(before, connection_file)
        for name, former in self.streams.items():
            for stream in former:
                _forward(stream, getattr(sys, name))
        self._threads = set(threading.enumerate())
        if state is None:
            _seed_anew()
        else:
            random.setstate(state)  # the fork has seeded it anew, and sockets have used it
        application.start()
        _end_control(application)
        _leave()

    def _application(self, before: Any, connection_file: str) -> Any:
        kind: Any = type(before)
        kernel_kind: Any = type(before.kernel)
        kind.clear_instance()
        kernel_kind.clear_instance()

        class ForkedKernelApp(kind):  # type: ignore[misc]  # found at run time
            """Leaves the shell as it is, which has all of this already."""

            name = before.name

            def _nothing(self) -> None:
                pass

            init_poller = init_path = init_gui_pylab = init_extensions = init_code = _nothing
            init_pdb = patch_io = init_crash_handler = configure_tornado_logger = _nothing

        application = ForkedKernelApp.instance(config=before.config, kernel_class=kernel_kind)
        application.initialize(["-f", connection_file])
        kernel = application.kernel
        self._shell.kernel = self._shell.parent = kernel
        kernel.carrel_branches = self
        for comm in list(getattr(kernel.comm_manager, "comms", {}).values()):
            comm.kernel = kernel
        return application


def _seed_anew() -> None:
    """Seed what a new process seeds; the generator of ``random`` has done so itself."""
    for module, function in (("numpy.random", "seed"), ("torch", "seed")):
        with contextlib.suppress(Exception):
            getattr(sys.modules[module], function)()


def _forward(former: Any, present: Any) -> None:
    """Let a stream of the parent, to which a logger may refer, be the one of this process."""

    class FormerStream(type(present)):  # type: ignore[misc]  # found at run time
        def __getattribute__(self, name: str) -> Any:
            return getattr(present, name)

    former.__class__ = FormerStream


def _pause_openmp() -> bool:
    """End the idle threads of GNU OpenMP, which a fork would wait for in vain; they start again."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(None, 5)[5].rstrip("\n") for line in file if "libgomp" in line}
    for path in sorted(paths):
        with contextlib.suppress(OSError, AttributeError):
            library = ctypes.CDLL(path, mode=os.RTLD_NOLOAD | os.RTLD_NOW)
            if library.omp_pause_resource_all(_PAUSE_HARD):
                return False
    return True


def _end_control(application: Any) -> None:
    """End the control thread, whose last flush hangs once the thread of the streams has ended."""
    thread = getattr(application, "control_thread", None)
    if thread is not None:
        thread.io_loop.add_callback(thread.io_loop.stop)
        thread.join(_CONTROL_SECONDS)


def _leave() -> None:
    threading._shutdown()  # type: ignore[attr-defined]  # joins the threads, as Python does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    os._exit(0)


def install() -> None:
    with contextlib.suppress(AttributeError, KeyError):
        shell = globals()["get_ipython"]()
        if getattr(shell.kernel, "carrel_branches", None) is None:
            shell.kernel.carrel_branches = Branches(shell)
