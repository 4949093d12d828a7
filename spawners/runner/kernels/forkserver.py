"""Fork kernels, or other Python programs, from a process that has imported what they need.

This file is executed by its path, also by an interpreter that has no Carrel: it needs only the
standard library, and ipykernel for kernels. Its argument is ``ForkSettings`` as JSON. Clients
connect to its Unix socket and send one ``ForkRequest`` (``fork_client``); the server answers with
the process ID, and with the exit status when the process has ended.

The server executes nothing of a user. It imports packages that kernels have used:

* A kernel that ends normally writes down the packages that it has imported.
* When nothing has been requested for a moment, the server forks a candidate, which imports them. A
  package that leaves threads running, opens a device, crashes, hangs or is too large is given up
  for the life of the server; the candidate is dropped, and a new one tries the others.
* A candidate that has succeeded takes over the socket. Its predecessor only waits for its children.

A fork differs from a fresh start in three ways: packages are imported already, the seed of string
hashes is that of the server, and the parent process is the server. Everything else is restored
by ``become_fresh``. Requests for which a fork would differ in more are refused: the client starts
a process as usual.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import importlib
import importlib.util
import json
import os
import select
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final, NoReturn

_START_VARIABLES: Final = (
    *("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "OMP_", "MKL_", "OPENBLAS_"),
    *("NUMEXPR_", "MPL", "TF_", "TORCH_", "KMP_"),
)
"""Variables with these beginnings act at the start of a process or at an import."""
_DEVICE_FILES: Final = ("/dev/nvidia", "/dev/kfd", "/dev/dri/", "/dev/accel/")
_READ_AT_IMPORT: Final = ("matplotlibrc",)
"""Files of the working folder that packages read when they are imported."""
_READ_IN_HOME: Final = (
    f".local/lib/python{sys.version_info[0]}.{sys.version_info[1]}",
    ".config/matplotlib",
    ".matplotlib",
)
"""Files of a home that act at the start of a process or at an import."""
_NO_PACKAGES: Final = frozenset({"ipykernel_launcher", "sitecustomize", "usercustomize"})
_BOUND_AT_IMPORT: Final = (
    *("matplotlib_inline.backend_inline", "ipywidgets"),
    *("tqdm.autonotebook", "tqdm.auto", "plotly.io._renderers", "plotly.io"),
)
"""Modules that ask for IPython's shell when they are imported: how they show figures, widgets and
progress bars depends on it, and the server has none."""
START_KERNEL: Final = "--kernel"
_CLOSE_SECONDS: Final = 1.0
_BUSY_FACTOR: Final = 5.0
"""How many times ``ForkSettings.quiet`` a busy server waits until it imports packages anyway."""
_REQUEST_SECONDS: Final = 2.0
_IMPORT_SECONDS: Final = 60.0
"""Time for all imports of a candidate."""
_TRY_SECONDS: Final = 10.0
_REMEMBERED: Final = 40
"""The most packages in the list; the ones that were not used for the longest time are dropped."""
KERNEL: Final = "kernel"
_REMEMBERED_MODULES: Final = 80
LIST_CHARACTERS: Final = 1 << 18
"""The most of a list that is read."""
SPACE_BYTES: Final = 600
SPACE: Final = "FORK_SPACE"
"""A variable of the server whose memory is reused to show the variables of a fork in /proc."""
PACKAGES_VARIABLE: Final = "CARREL_PACKAGES"
"""A variable of a kernel with the file for its packages, instead of that of the settings."""
_SET_CHILD_SUBREAPER: Final = 36  # linux/prctl.h
_MATPLOTLIB_BACKEND: Final = "module://matplotlib_inline.backend_inline"
"""What ipykernel sets when it starts; matplotlib reads it when it is imported."""


Packages = dict[str, tuple[str, ...]]
"""Names of packages, each with names of its modules."""


@dataclass(frozen=True)
class ForkSettings:
    """The settings of a server.

    Attributes:
        socket: path of the Unix socket.
        program: ``kernel``, or ``MODULE:FUNCTION``: the function gets the request's arguments.
        imports: modules to import before the first fork; ``MODULE:FUNCTION`` is called as well.
        packages: file with the packages that kernels have used, each with its modules in a line;
            empty: none is learned.
        memory: the most resident memory in bytes that imported packages may need.
        quiet: seconds without a request after which packages are imported.
        idle: seconds without a request after which the server exits; 0: never.
        lifeline: whether the server exits when its standard input ends.
        shown: names of variables of a fork that /proc shows, for other programs.
    """

    socket: str = ""
    program: str = KERNEL
    imports: tuple[str, ...] = ()
    packages: str = ""
    memory: int = 1 << 30
    quiet: float = 1.0
    idle: float = 0.0
    lifeline: bool = False
    shown: tuple[str, ...] = ()


@dataclass(frozen=True)
class ForkRequest:
    """What to fork. Four descriptors come with it: stdin, stdout, stderr and the lifeline.

    Attributes:
        command: the command line that /proc shows.
        arguments: ``sys.argv`` without the program.
        environment: the whole environment.
        folder: the working folder.
    """

    command: list[str]
    arguments: list[str]
    environment: dict[str, str]
    folder: str


@dataclass
class Fork:
    """A request in the forked process.

    Attributes:
        descriptors: stdin, stdout, stderr, lifeline.
    """

    request: ForkRequest
    descriptors: list[int]


class ForkDiffers(Exception):
    """A fork would differ from a fresh start."""


@dataclass
class ForkServer:
    """Answers requests; ``serve`` returns in each fork.

    Attributes:
        environment: the variables that the server was started with; imports may add some.
        imported: packages that were imported ahead.
        given_up: reason by package that is not imported ahead.
    """

    settings: ForkSettings
    listener: socket.socket
    environment: dict[str, str]
    imported: tuple[str, ...] = ()
    given_up: dict[str, str] = field(default_factory=dict)
    _clients: dict[int, socket.socket] = field(default_factory=dict)
    _candidate: tuple[int, int, float] | None = None
    """Process ID of the candidate, the pipe that it reports to, and its deadline."""
    _trying: str = ""
    _failed: bool = False
    _last: float = field(default_factory=time.monotonic)
    _retired: bool = False
    _wanted_since: float | None = None
    _packages: Packages = field(default_factory=dict)
    _paths: dict[str, float] = field(default_factory=dict)

    def prepare(self) -> None:
        """Record what requests are compared with; called after the imports."""
        self._packages = read_packages(self.settings.packages)
        self._take_used()
        self._paths = {path: _changed_at(path) for path in sys.path if path}
        gc.collect()
        gc.freeze()

    def serve(self) -> Fork:
        """Answer requests until there is one to execute in this process, a fork."""
        wake, waker = socket.socketpair()
        for end in (wake, waker):
            end.setblocking(False)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
        while True:
            self._end_if_done()
            watched: list[Any] = [wake]
            watched += [] if self._retired else [self.listener]
            watched += [sys.stdin] if self.settings.lifeline and not self._retired else []
            watched += [self._candidate[1]] if self._candidate else []
            ready, _, _ = select.select(watched, [], [], self._pause())
            if wake in ready:
                wake.recv(4096)
            self._reap()
            if sys.stdin in ready and not os.read(0, 1):
                self._retire()
            if self._candidate and self._candidate[1] in ready:
                self._hear()
            if self.listener in ready:
                fork = self._accept()
                if fork is not None:
                    signal.set_wakeup_fd(-1)
                    wake.close()
                    waker.close()
                    return fork
            self._look_at_candidate()
            if self._may_learn() and self._start_candidate():
                # This is the new server.
                wake.close()
                waker.close()
                return self.serve()

    # -- forks ----------------------------------------------------------------------------

    def _accept(self) -> Fork | None:
        try:
            client, _ = self.listener.accept()
        except BlockingIOError:
            return None  # the successor of this server has accepted it
        self._last = time.monotonic()
        client.settimeout(_REQUEST_SECONDS)
        try:
            request, descriptors = receive(client)
        except (OSError, ValueError, TypeError, KeyError):
            client.close()
            return None
        try:
            self._check(request)
            pid = os.fork()
        except (ForkDiffers, OSError) as error:
            _answer(client, {"refused": str(error)})
            client.close()
            _close(descriptors)
            return None
        if pid == 0:
            client.close()
            self._forget_all()
            return Fork(request, descriptors)
        _close(descriptors)
        self._clients[pid] = client
        _answer(client, {"pid": pid, "given_up": self.given_up})
        return None

    def _check(self, request: ForkRequest) -> None:
        wanted, own = start_variables(request.environment), start_variables(self.environment)
        if wanted != own:
            names = {name for name, _ in wanted.items() ^ own.items()}
            raise ForkDiffers(f"the environment differs in {', '.join(sorted(names))}")
        home = request.environment.get("HOME", "")
        if self.settings.program == KERNEL and home != self.environment.get("HOME", ""):
            for name in _READ_IN_HOME:
                if os.path.lexists(os.path.join(home, name)):
                    raise ForkDiffers(f"the home has its own {name}")
        if interpreter_of(request.command[0]) != interpreter_of(sys.executable):
            raise ForkDiffers(f"this server forks {sys.executable}")
        if not os.path.isdir(request.folder):
            raise ForkDiffers(f"there is no folder {request.folder}")
        for path, changed in self._paths.items():
            if _changed_at(path) != changed:
                self._retire()  # a new server imports what is there now
                raise ForkDiffers(f"{path} has changed")
        for name in (*self.imported, *_READ_AT_IMPORT):
            for found in (name, f"{name}.py"):
                if os.path.lexists(os.path.join(request.folder, found)):
                    raise ForkDiffers(f"the working folder has its own {found}")

    def _forget_all(self) -> None:
        """In a fork: close what belongs to the server."""
        self.listener.close()
        for client in self._clients.values():
            client.close()
        self._clients.clear()
        if self._candidate:
            os.close(self._candidate[1])
            self._candidate = None

    def _reap(self) -> None:
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            client = self._clients.pop(pid, None)
            if client is None:
                continue
            # Ended before the client learns of it: they may still write files.
            _end_session(pid, everything=not self._clients)
            _answer(client, {"exit": os.waitstatus_to_exitcode(status)})
            client.close()
            self._take_used()

    # -- packages ---------------------------------------------------------------------------

    def _take_used(self) -> None:
        """Add to the list what kernels have written down."""
        folder, name = os.path.split(self.settings.packages)
        if not name:
            return
        with contextlib.suppress(OSError):
            for found in sorted(os.listdir(folder)):
                if found.startswith(f"{name}.") and found[len(name) + 1 :].isdigit():
                    path = os.path.join(folder, found)
                    self._packages = merged(read_packages(path), self._packages)
                    os.unlink(path)
                    write_packages(self.settings.packages, self._packages)

    def _wanted(self) -> Packages:
        return {name: m for name, m in self._packages.items() if name not in self.given_up}

    def _may_learn(self) -> bool:
        if self._retired or self._candidate or not self.settings.packages:
            return False
        if not self._has_more():
            self._wanted_since = None
            return False
        now = time.monotonic()
        if self._wanted_since is None:
            self._wanted_since = now
        quiet = self.settings.quiet
        return now - self._last >= quiet or now - self._wanted_since >= _BUSY_FACTOR * quiet

    def _start_candidate(self) -> bool:
        """Fork a candidate; return True in it once it may replace this server."""
        packages = self._wanted()
        inner, outer = os.pipe()
        os.set_blocking(inner, False)
        pid = os.fork()
        if pid:
            os.close(outer)
            self._candidate = (pid, inner, time.monotonic() + _IMPORT_SECONDS)
            self._trying, self._failed = "", False
            return False
        signal.set_wakeup_fd(-1)
        os.close(inner)
        os.setpgid(0, 0)
        server = _Candidate(outer, self.settings.memory)
        server.import_all(packages)
        self.imported = tuple(packages)
        for client in self._clients.values():
            client.close()
        self._clients = {}
        self.prepare()
        server.succeed()
        self._last = time.monotonic()
        self._wanted_since = None
        return True

    def _hear(self) -> None:
        assert self._candidate is not None
        _, pipe, _ = self._candidate
        try:
            text = os.read(pipe, 1 << 16).decode()
        except BlockingIOError:
            return
        for line in text.split("\n"):
            kind, _, rest = line.partition(" ")
            if kind == "import":
                self._trying = rest
            elif kind == "fails":
                self._give_up(rest)
                self._failed = True
            elif kind == "ready":
                self._retired = True
                self._candidate = None
                os.close(pipe)
                return

    def _look_at_candidate(self) -> None:
        """Give up the package that a candidate has hung or died with."""
        if self._candidate is None:
            return
        pid, pipe, deadline = self._candidate
        hangs = time.monotonic() > deadline
        if hangs:
            with contextlib.suppress(OSError):
                os.killpg(pid, signal.SIGKILL)
        elif _lives(pid):
            return
        self._hear()
        if self._candidate is None:
            return
        os.close(pipe)
        self._candidate = None
        if self._trying:
            self._give_up(f"{self._trying} {'its import hangs' if hangs else 'its import crashes'}")
        elif not self._failed:
            self._last, self._wanted_since = time.monotonic(), None  # not the fault of a package

    def _give_up(self, text: str) -> None:
        name, _, why = text.partition(" ")
        self.given_up[name] = why
        self._trying = ""

    # -- the end ----------------------------------------------------------------------------

    def _pause(self) -> float | None:
        if self._candidate:
            return 0.1
        if self._retired:
            return None
        waits = [self.settings.quiet] if self.settings.packages and self._has_more() else []
        if self.settings.idle and not self._clients:
            waits.append(max(0.0, self._last + self.settings.idle - time.monotonic()))
        return min(waits, default=None)

    def _has_more(self) -> bool:
        return any(
            not {name, *(f"{name}.{module}" for module in modules)} <= sys.modules.keys()
            for name, modules in self._wanted().items()
        )

    def _end_if_done(self) -> None:
        if self._clients or self._candidate:
            return
        if self.settings.idle and time.monotonic() - self._last >= self.settings.idle:
            self._retire()
        if self._retired:
            os._exit(0)

    def _retire(self) -> None:
        """Take no more requests; the server ends with its last fork."""
        if not self._retired:
            self._retired = True
            with contextlib.suppress(OSError):
                os.unlink(self.settings.socket)


@dataclass
class _Candidate:
    """Imports packages in a fork of the server, and reports to it."""

    pipe: int
    memory: int

    def import_all(self, packages: Packages) -> None:
        """Import the packages in this order; exit if one may not be imported ahead."""
        os.environ["MPLBACKEND"] = os.environ.get("MPLBACKEND", _MATPLOTLIB_BACKEND)
        for name, modules in packages.items():
            self._report(f"import {name}")
            try:
                found = importlib.util.find_spec(name)
                if found is None:
                    self._fail(name, "it is not installed")
                with _quiet():
                    for module in (name, *(f"{name}.{module}" for module in modules)):
                        importlib.import_module(module)
            except (Exception, SystemExit) as error:
                self._fail(name, f"its import raises {type(error).__name__}")
            self._try(name)
        if os.environ["MPLBACKEND"] == _MATPLOTLIB_BACKEND:
            del os.environ["MPLBACKEND"]

    def succeed(self) -> None:
        self._report("ready")
        os.close(self.pipe)

    def _try(self, name: str) -> None:
        """Use the package in a fork, and see what its import has left behind."""
        pid = os.fork()
        if pid == 0:
            try:
                with _quiet():
                    use(name)
            except BaseException:
                os._exit(1)
            os._exit(0)
        if not _exits_well(pid):
            self._fail(name, "it does not work after a fork")
        # Libraries that know of forks have ended their threads before this one.
        if len(os.listdir("/proc/self/task")) > 1:
            self._fail(name, "it keeps threads running")
        if _device_is_open():
            self._fail(name, "it opens a device")
        if _resident_bytes() > self.memory:
            self._fail(name, "it needs too much memory")

    def _fail(self, name: str, why: str) -> NoReturn:
        self._report(f"fails {name} {why}")
        os._exit(1)

    def _report(self, text: str) -> None:
        os.write(self.pipe, f"{text}\n".encode())


def use(name: str) -> None:
    """Compute a little with a package, so that broken locks and thread pools show."""
    module: Any = sys.modules[name]
    if name == "numpy":
        square = module.ones((300, 300))
        assert (square @ square).sum() > 0
        module.linalg.svd(square[:40, :40])
    elif name == "torch":
        square = module.ones((300, 300), requires_grad=True)
        (square @ square).sum().backward()
    else:
        dir(module)


# -- becoming a fresh process ---------------------------------------------------------------


def become_fresh(fork: Fork, settings: ForkSettings, environment: dict[str, str]) -> None:
    """Give a fork the state of a process that has just been started.

    Args:
        environment: the variables of the server without those that imports have added.
    """
    request = fork.request
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    for number, descriptor in enumerate(fork.descriptors[:3]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    show_in_proc(request, settings.shown)
    added = {name: value for name, value in os.environ.items() if name not in environment}
    added.pop(SPACE, None)
    os.environ.clear()
    os.environ.update(added | request.environment)
    os.chdir(request.folder)
    time.tzset()
    _new_random_states()


def show_in_proc(request: ForkRequest, shown: tuple[str, ...]) -> None:
    """Make /proc show the command and some variables of this process.

    /proc reads them from the memory of the process, where the kernel has put them at the start of
    the server.
    """
    with open("/proc/self/stat", "rb") as file:
        numbers = file.read().rpartition(b")")[2].split()
    # Fields 48 to 51 of proc(5); the first of the list is the third.
    first, last, environment = (int(numbers[index - 3]) for index in (48, 49, 50))
    words = b"\0".join(os.fsencode(word) for word in request.command) + b"\0"
    _overwrite(first, last - first, words)
    with open("/proc/self/environ", "rb") as file:
        found = file.read()
    # An empty entry would look like the end.
    values, filler = request.environment, b"_" * len(found)
    lines = [os.fsencode(f"{name}={values[name]}") for name in shown if name in values]
    at = 0
    for entry in found.split(b"\0"):
        name = os.fsdecode(entry.partition(b"=")[0])
        if name == SPACE:
            _overwrite(environment + at, len(entry), b"\0".join([*lines, filler])[: len(entry)])
        elif name in shown:
            _overwrite(environment + at, len(entry), filler[: len(entry)])
        at += len(entry) + 1


def _overwrite(address: int, size: int, text: bytes) -> None:
    ctypes.memmove(address, text[:size].ljust(size, b"\0"), size)


def _new_random_states() -> None:
    """Seed what a fresh process seeds; ``random`` and ``logging`` handle a fork themselves."""
    numpy: Any = sys.modules.get("numpy.random")
    if numpy is not None:
        numpy.seed()
    tempfile: Any = sys.modules.get("tempfile")
    if tempfile is not None:
        tempfile.tempdir = None
    processes: Any = sys.modules.get("multiprocessing.process")
    if processes is not None:
        processes.current_process().authkey = os.urandom(32)


def forget_bound_modules() -> None:
    """Let the kernel import modules again that would have found its shell at their import.

    The modules that they import stay imported, so that this takes a few milliseconds.
    """
    for name in _BOUND_AT_IMPORT:
        if sys.modules.pop(name, None) is not None:
            package, _, module = name.rpartition(".")
            if package in sys.modules:
                vars(sys.modules[package]).pop(module, None)


def watch(lifeline: int) -> None:
    """Exit when the client has gone: a thread, as fresh kernels watch their parent."""

    def wait() -> None:
        with contextlib.suppress(OSError):
            os.read(lifeline, 1)
        os._exit(1)

    threading.Thread(target=wait, name="lifeline", daemon=True).start()


def run_kernel(arguments: list[str], *, packages: str, lifeline: int | None = None) -> None:
    """Run a kernel, and write down what it has imported when it ends.

    Args:
        arguments: those of ``ipykernel_launcher``.
        packages: see ``ForkSettings``.
        lifeline: descriptor that is readable when the client has gone; None: watch the parent.
    """
    import ipykernel_launcher  # noqa: PLC0415
    from ipykernel import kernelapp  # noqa: PLC0415

    forget_bound_modules()
    packages = os.environ.get(PACKAGES_VARIABLE) or packages
    before = set(sys.modules)
    application: Any = kernelapp.IPKernelApp
    more = []
    if lifeline is not None:
        application.init_poller = lambda _: watch(lifeline)
        # ipykernel has read this variable when it was imported.
        more = [f"--IPKernelApp.parent_handle={os.environ.get('JPY_PARENT_PID') or 0}"]
    sys.argv[:] = [ipykernel_launcher.__file__, *arguments]
    try:
        kernelapp.launch_new_instance(argv=[*arguments, *more])
        _await_reply(application.instance())
    finally:
        if packages:
            used = used_packages([name for name in sys.modules if name not in before])
            write_packages(f"{packages}.{os.getpid()}", used)


def leave() -> NoReturn:
    """Exit with all handlers for the end of the process, but without freeing every object.

    That would take as long as a short cell. The handlers of C libraries run, too.
    """
    threading._shutdown()  # type: ignore[attr-defined]  # joins the threads, as Python does
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(Exception):
            stream.flush()
    ctypes.PyDLL(None).exit(0)
    os._exit(0)


def _await_reply(application: Any) -> None:
    """Let the thread that answers the shutdown request end before exit handlers run.

    ipykernel 7 closes the channels of the thread first: in one of 40 shutdowns, it waits for ever.
    """
    kernel = application.kernel
    if application.control_thread is not None and getattr(kernel, "_shutdown_message", None):
        application.control_thread.join(_CLOSE_SECONDS)


def run_program(fork: Fork, program: str) -> NoReturn:
    """Call ``MODULE:FUNCTION`` with the arguments; its result is the exit status."""
    module, _, function = program.partition(":")
    os.close(fork.descriptors[3])
    sys.argv[:] = [module, *fork.request.arguments]
    sys.exit(getattr(importlib.import_module(module), function)(fork.request.arguments))


# -- packages on disk -------------------------------------------------------------------------


def read_packages(path: str) -> Packages:
    """Read the names of packages, each with those of its modules that were used."""
    with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
        return parse_packages(file.read(LIST_CHARACTERS))
    return {}


def parse_packages(text: str) -> Packages:
    """Parse a list of packages; whatever is no name is left out."""
    packages: Packages = {}
    for line in text.split("\n"):
        words = [word for word in line.split(" ") if word.isidentifier()]
        if words and len(packages) < _REMEMBERED:
            packages[words[0]] = tuple(words[1 : _REMEMBERED_MODULES + 1])
    return packages


def write_packages(path: str, packages: Packages) -> None:
    """Replace the file; a list that cannot be written is learned again."""
    with contextlib.suppress(OSError):
        with open(f"{path}.part", "w", encoding="utf-8") as file:
            file.write(packages_text(packages))
        os.replace(f"{path}.part", path)


def packages_text(packages: Packages) -> str:
    """Return the list as text, a line for each package."""
    return "".join(f"{' '.join((name, *modules))}\n" for name, modules in packages.items())


def merged(used: Packages, known: Packages) -> Packages:
    """Return all packages, those that were just used first."""
    names = list(dict.fromkeys([*used, *known]))[:_REMEMBERED]
    return {
        name: tuple(dict.fromkeys([*used.get(name, ()), *known.get(name, ())]))[
            :_REMEMBERED_MODULES
        ]
        for name in names
    }


def used_packages(modules: Iterable[str]) -> Packages:
    """Return the packages among these modules that are installed.

    Each with its public modules of the first level, in the order of their imports.
    """
    found: dict[str, list[str]] = {}
    for name in modules:
        package, _, module = name.partition(".")
        if package.startswith("_") or package in _NO_PACKAGES:
            continue
        if not module and _is_installed(sys.modules.get(package)):
            found[package] = []
        elif package in found and module.isidentifier() and not module.startswith("_"):
            found[package].append(module)
    return {package: tuple(names) for package, names in found.items()}


def _is_installed(module: object) -> bool:
    """Whether it lies in a folder of installed packages, whose changes the server notices."""
    origin = getattr(getattr(module, "__spec__", None), "origin", None) or ""
    folders = (path for path in sys.path if path.endswith(("site-packages", "dist-packages")))
    return any(origin.startswith(f"{folder}{os.sep}") for folder in folders)


# -- small things -----------------------------------------------------------------------------


def interpreter_of(path: str) -> tuple[str, str]:
    """Return what identifies an interpreter: ``python`` and ``python3`` are one environment."""
    return os.path.dirname(os.path.abspath(path)), os.path.realpath(path)


def start_variables(environment: Any) -> dict[str, str]:
    """Return the variables that act before a fork could set them."""
    return {name: value for name, value in environment.items() if name.startswith(_START_VARIABLES)}


def initial_environment() -> dict[str, str]:
    """Return the variables that this process was started with, without ``SPACE``.

    Python itself has added one, where the locale is C.
    """
    with open("/proc/self/environ", "rb") as file:
        lines = [os.fsdecode(line).partition("=") for line in file.read().split(b"\0") if line]
    return {name: value for name, _, value in lines if name != SPACE}


def receive(client: socket.socket) -> tuple[ForkRequest, list[int]]:
    """Read a request. Raises OSError, ValueError, TypeError or KeyError if it is none."""
    data, descriptors, _, _ = socket.recv_fds(client, 1 << 16, 4)
    try:
        while not data.endswith(b"\n"):
            more = client.recv(1 << 16)
            data += more or b"cut off\n"
        request = ForkRequest(**json.loads(data))
        stdin, stdout, stderr, lifeline = descriptors
    except BaseException:
        _close(list(descriptors))
        raise
    return request, [stdin, stdout, stderr, lifeline]


def _answer(client: socket.socket, answer: dict[str, Any]) -> None:
    with contextlib.suppress(OSError):
        client.sendall(json.dumps(answer).encode() + b"\n")


def _close(descriptors: list[int]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)


def _changed_at(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0


def _lives(pid: int) -> bool:
    try:
        return os.waitpid(pid, os.WNOHANG) == (0, 0)
    except ChildProcessError:
        return False


def _exits_well(pid: int) -> bool:
    deadline = time.monotonic() + _TRY_SECONDS
    descriptor = os.pidfd_open(pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        if not poll.poll(max(0.0, deadline - time.monotonic()) * 1000):
            os.kill(pid, signal.SIGKILL)
    finally:
        os.close(descriptor)
    _, status = os.waitpid(pid, 0)
    return status == 0


def _end_session(pid: int, *, everything: bool) -> None:
    """Kill the processes that a fork has left behind, which this server has adopted.

    Args:
        everything: kill all adopted processes, because no fork is left that they can belong to.
    """
    with contextlib.suppress(OSError):
        path = f"/proc/self/task/{os.getpid()}/children"
        with open(path, encoding="ascii") as file:
            children = [int(word) for word in file.read().split()]
        for child in children:
            if os.getsid(child) == pid or (everything and os.getsid(child) != os.getsid(0)):
                os.kill(child, signal.SIGKILL)


def _device_is_open() -> bool:
    for descriptor in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError):
            if os.readlink(f"/proc/self/fd/{descriptor}").startswith(_DEVICE_FILES):
                return True
    return False


def _resident_bytes() -> int:
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@contextlib.contextmanager
def _quiet() -> Any:
    """Discard what an import prints."""
    kept = [os.dup(1), os.dup(2)]
    null = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(null, 1)
        os.dup2(null, 2)
        yield
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        for number, descriptor in zip((1, 2), kept, strict=True):
            os.dup2(descriptor, number)
        _close([*kept, null])


def _ignore(number: int, frame: FrameType | None) -> None:
    """Handle SIGCHLD: the wake-up descriptor does the work."""


def bind(path: str) -> socket.socket:
    """Listen at the path; a socket of an ended server is replaced."""
    # Relative to the folder, because the path of a socket may have only 107 bytes.
    folder, name = os.path.split(path)
    os.chdir(folder)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    draft = f".{os.getpid()}"
    listener.bind(draft)
    os.chmod(draft, 0o600)
    listener.listen(128)
    listener.setblocking(False)
    os.rename(draft, name)
    os.chdir(os.sep)
    return listener


def serve(text: str) -> None:
    """Run a server, and then, in each fork, its program."""
    values = json.loads(text)
    values |= {name: tuple(values.get(name, ())) for name in ("imports", "shown")}
    settings = ForkSettings(**values)
    environment = initial_environment()
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    with _quiet():
        for item in settings.imports:
            name, _, function = item.partition(":")
            module = importlib.import_module(name)
            if function:
                getattr(module, function)()
    server = ForkServer(settings, bind(settings.socket), environment)
    server.prepare()
    fork = server.serve()
    become_fresh(fork, settings, environment)
    if settings.program == KERNEL:
        run_kernel(fork.request.arguments, packages=settings.packages, lifeline=fork.descriptors[3])
        leave()
    else:
        run_program(fork, settings.program)


def start_kernel(folder: str, packages: str, *arguments: str) -> None:
    """Run a kernel without a server; it is imported before it enters the notebook's folder.

    Otherwise it would import a ``re.py`` or ``types.py`` of the folder.
    """
    import ipykernel_launcher  # noqa: F401, PLC0415

    os.chdir(folder)
    run_kernel(list(arguments), packages=packages)


if __name__ == "__main__":
    if not sys.flags.safe_path:
        sys.path.pop(0)  # the folder of this file
    if sys.argv[1] == START_KERNEL:
        start_kernel(*sys.argv[2:])
    else:
        serve(sys.argv[1])
