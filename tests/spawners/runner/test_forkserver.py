"""A fork server: what it forks is like a fresh process, and what it imports survives a fork."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from carrel.spawners.runner.kernels import fork_servers, forkserver
from carrel.spawners.runner.kernels.fork_client import ForkedProcess, ForkRefused, fork, listens
from carrel.spawners.runner.kernels.start import KernelStart

from ...fake_service import eventually

STATE = """
import json, multiprocessing, os, random, signal, sys, tempfile, threading
print(json.dumps({
    "arguments": [os.path.basename(sys.argv[0]), *sys.argv[1::2]],
    "command": open("/proc/self/cmdline").read().rstrip("\\0").split("\\0")[1:4:2],
    "name": open("/proc/self/comm").read(),
    "environment": {n: v for n, v in os.environ.items() if n != "JPY_PARENT_PID"},
    "lease": [word for word in open("/proc/self/environ").read().split("\\0")
              if word.startswith("CARREL_LEASE")],
    "folder": os.getcwd(),
    "path": sys.path,
    "flags": repr(sys.flags),
    "threads": threading.active_count(),
    "signals": {int(n): repr(signal.getsignal(n))[:20] for n in signal.valid_signals()},
    "mask": sorted(signal.pthread_sigmask(signal.SIG_BLOCK, [])),
    "session": os.getsid(0) == os.getpid(),
    "umask": os.umask(0o22),
    "temporary": tempfile.gettempdir(),
    "main": sys.modules["__main__"].__name__,
    "names": sorted(name for name in globals() if not name.startswith("_")),
    "process": multiprocessing.current_process().name,
}))
"""
RANDOM = """
import json, multiprocessing, os, random, numpy
print(json.dumps([random.random(), numpy.random.random(), os.urandom(4).hex(),
                  multiprocessing.current_process().authkey.hex()]))
"""


@dataclass(slots=True)
class Server:
    """A fork server for kernels, with packages of the test on its path."""

    folder: Path
    packages: Path
    environment: dict[str, str]
    process: subprocess.Popen[bytes] = field(init=False)

    @property
    def socket(self) -> Path:
        return self.folder / fork_servers.SOCKET

    def start(self, **changes: object) -> None:
        settings = fork_servers.in_folder(fork_servers.KERNEL_SETTINGS, self.folder)
        self.process = fork_servers.start(
            replace(settings, lifeline=True, quiet=0.1, **changes),  # type: ignore[arg-type]
            interpreter=sys.executable,
            environment=self.environment,
            stdin=subprocess.PIPE,
        )
        eventually(lambda: listens(self.socket))

    def package(self, name: str, source: str) -> None:
        """Install a package in a folder that counts as one for everybody."""
        (self.packages / name).mkdir()
        (self.packages / name / "__init__.py").write_text(source)

    def close(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()
        eventually(lambda: not listens(self.socket))
        self.process.wait(10)


class Kernel(KernelStart):
    """A kernel in a folder, forked if a server is given."""

    def __init__(self, folder: Path, environment: Mapping[str, str], server: str = "") -> None:
        super().__init__(new_notebook(), kernel_name="python3", startup_timeout=60)
        self.fork_server = server
        self.said: list[str] = []
        self.km = self.create_kernel_manager()
        self.start_new_kernel(cwd=str(folder), env=dict(environment))
        self.start_new_kernel_client()

    def handle_raw_output(self, text: str) -> None:
        self.said.append(text)

    @property
    def forked(self) -> bool:
        return isinstance(self.process, ForkedProcess)

    def run(self, source: str) -> str:
        cell: NotebookNode = new_code_cell(source)
        self.nb.cells = [cell]
        self.execute_cell(cell, 0)
        return "".join(output.get("text", "") for output in cell.outputs)

    def shown(self, source: str) -> list[str]:
        """Return the type of the richest form of each output."""
        self.run(source)
        found = []
        for output in self.nb.cells[0].outputs:
            forms = [form for form in output.get("data", {}) if form != "text/plain"]
            found.append(next(iter(forms), "text/plain"))
        return found

    def end(self) -> None:
        self._cleanup_kernel()


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    home, packages = tmp_path / "home", tmp_path / "lib" / "site-packages"
    home.mkdir()
    packages.mkdir(parents=True)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(packages),
        "CARREL_LEASE": "j-0.1",
    }
    made = Server(tmp_path / "server", packages, environment)
    made.folder.mkdir()
    yield made
    with suppress(AttributeError, BrokenPipeError):
        made.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "notebooks").mkdir()
    return tmp_path / "notebooks"


def answer(server: Server, folder: Path, environment: Mapping[str, str]) -> ForkedProcess:
    """Fork something that ends at once."""
    with open(os.devnull, "r+b") as null:
        number = null.fileno()
        return fork(
            server.socket,
            [sys.executable, "-m", "ipykernel_launcher"],
            ["--version"],
            environment=environment,
            folder=str(folder),
            outputs=(number, number, number),
        )


def test_a_forked_kernel_is_like_a_fresh_one(server: Server, folder: Path) -> None:
    server.start()
    lease = {**server.environment, "CARREL_LEASE": "j-1.1", "OF_THE_JOB": "1", "TZ": "Asia/Tokyo"}
    kernels = [Kernel(folder, lease, name) for name in (str(server.socket), "")]
    try:
        assert [kernel.forked for kernel in kernels] == [True, False], kernels[0].said
        forked, fresh = (json.loads(kernel.run(STATE)) for kernel in kernels)
        # A kernel that is started as usual is started by another file.
        assert forked.pop("command") == ["-m", "-f"]
        del fresh["command"]
        assert forked == fresh
        assert forked["lease"] == ["CARREL_LEASE=j-1.1"]
    finally:
        for kernel in kernels:
            kernel.end()


def test_two_forks_draw_different_random_numbers(server: Server, folder: Path) -> None:
    write = "numpy random\n"
    (server.folder / fork_servers.PACKAGES).write_text(write)
    server.start()
    eventually(lambda: imported(server, folder, "numpy"))
    drawn = []
    for _ in range(2):
        kernel = Kernel(folder, server.environment, str(server.socket))
        drawn.append(json.loads(kernel.run(RANDOM)))
        kernel.end()
    assert all(first != second for first, second in zip(*drawn, strict=True))


def imported(server: Server, folder: Path, name: str) -> bool:
    kernel = Kernel(folder, server.environment, str(server.socket))
    try:
        return kernel.run(f"import sys\nprint({name!r} in sys.modules)") == "True\n"
    finally:
        kernel.end()


def test_what_a_kernel_has_imported_is_imported_ahead_of_the_next_one(
    server: Server, folder: Path
) -> None:
    server.package("heavy", "import os\nimporter = os.getpid()")
    server.start()
    kernel = Kernel(folder, server.environment, str(server.socket))
    kernel.run("import heavy")
    kernel.end()
    eventually(lambda: imported(server, folder, "heavy"))


def test_figures_and_progress_bars_are_shown_though_their_packages_were_imported_ahead(
    server: Server, folder: Path
) -> None:
    names = ("matplotlib pyplot", "matplotlib_inline", "ipywidgets", "tqdm auto")
    (server.folder / fork_servers.PACKAGES).write_text("".join(f"{name}\n" for name in names))
    server.start()
    eventually(lambda: imported(server, folder, "matplotlib.pyplot"))
    kernel = Kernel(folder, server.environment, str(server.socket))
    assert kernel.forked
    plot = "import matplotlib.pyplot as plt\nloss = [3, 2, 1]\nplt.plot(loss)"
    assert kernel.shown(f"{plot};") == ["image/png"]
    assert kernel.shown(plot) == ["text/plain", "image/png"]
    widget = "application/vnd.jupyter.widget-view+json"
    assert kernel.shown("from tqdm.auto import tqdm\nlist(tqdm('ab'));") == [widget]
    kernel.end()


BAD_PACKAGES = {
    "keeps_thread": (
        "import threading, time\n"
        "threading.Thread(target=time.sleep, args=[600], daemon=True).start()",
        "it keeps threads running",
    ),
    "raises": ("raise RuntimeError('not here')", "its import raises RuntimeError"),
    "crashes": ("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)", "its import crashes"),
    "leaves": ("raise SystemExit(3)", "its import raises SystemExit"),
    "large": ("data = b'x' * (300 << 20)", "it needs too much memory"),
}


def test_packages_that_do_not_survive_a_fork_are_found_out(server: Server, folder: Path) -> None:
    for name, (source, _) in BAD_PACKAGES.items():
        server.package(name, source)
    server.package("good", "")
    names = ["good", *BAD_PACKAGES]
    (server.folder / fork_servers.PACKAGES).write_text("".join(f"{name}\n" for name in names))
    server.start(memory=250 << 20)
    expected = {name: why for name, (_, why) in BAD_PACKAGES.items()}
    eventually(lambda: answer(server, folder, server.environment).notes == expected)
    eventually(lambda: imported(server, folder, "good"))
    # A kernel can still import what is not imported ahead, and the job's log says why it waits.
    kernel = Kernel(folder, server.environment, str(server.socket))
    kernel.run("import keeps_thread")
    assert "keeps_thread is not imported ahead of a job: it keeps threads running" in "".join(
        kernel.said
    )
    kernel.end()


def test_a_fork_that_would_differ_from_a_fresh_start_is_refused(
    server: Server, folder: Path, tmp_path: Path
) -> None:
    server.package("heavy", "")
    (server.folder / fork_servers.PACKAGES).write_text("heavy\n")
    server.start()
    eventually(lambda: imported(server, folder, "heavy"))
    other = {**server.environment, "PYTHONHASHSEED": "7"}
    with pytest.raises(ForkRefused, match="the environment differs in PYTHONHASHSEED"):
        answer(server, folder, other)
    (folder / "heavy.py").write_text("")
    with pytest.raises(ForkRefused, match=r"the working folder has its own heavy\.py"):
        answer(server, folder, server.environment)
    (folder / "heavy.py").unlink()
    with pytest.raises(ForkRefused, match="there is no folder"):
        answer(server, tmp_path / "gone", server.environment)
    home = tmp_path / "other"
    (home / ".config" / "matplotlib").mkdir(parents=True)
    with pytest.raises(ForkRefused, match=r"the home has its own \.config/matplotlib"):
        answer(server, folder, {**server.environment, "HOME": str(home)})
    # A package was installed since the server has started: it ends, and the next one sees it.
    server.package("new", "")
    with pytest.raises(ForkRefused, match="site-packages has changed"):
        answer(server, folder, server.environment)
    assert server.process.wait(10) == 0 or not listens(server.socket)


def test_a_kernel_survives_the_server_and_ends_with_its_client(
    server: Server, folder: Path
) -> None:
    server.start()
    kernel = Kernel(folder, server.environment, str(server.socket))
    server.process.kill()
    server.process.wait()
    assert kernel.run("print(6 * 7)") == "42\n"
    kernel.end()
    # A client that is killed leaves no kernel behind.
    server.start()
    script = f"""
import os, sys, time
from carrel.spawners.runner.kernels.fork_client import fork
null = os.open(os.devnull, os.O_RDWR)
words = [sys.executable, "-m", "ipykernel_launcher"]
made = fork(__import__("pathlib").Path({str(server.socket)!r}), words, [],
            environment={server.environment!r}, folder={str(folder)!r}, outputs=(null,) * 3)
print(made.pid, flush=True)
time.sleep(600)
"""
    client = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE)
    assert client.stdout is not None
    pid = int(client.stdout.readline())
    eventually(lambda: "lifeline" in _threads(pid) or len(_threads(pid)) > 1)
    client.kill()
    client.wait()
    eventually(lambda: not Path(f"/proc/{pid}").exists())


def _threads(pid: int) -> list[str]:
    return [task.name for task in Path(f"/proc/{pid}/task").iterdir()]


def test_what_a_kernel_leaves_behind_ends_with_it(server: Server, folder: Path) -> None:
    server.start()
    kernel = Kernel(folder, server.environment, str(server.socket))
    left = int(
        kernel.run(
            "import subprocess\n"
            "print(subprocess.run(['sh', '-c', 'env -i sleep 600 >/dev/null 2>&1 & echo $!'],"
            " capture_output=True, text=True).stdout)"
        )
    )
    assert Path(f"/proc/{left}").exists()
    kernel.end()
    eventually(lambda: not Path(f"/proc/{left}").exists())


def test_exit_statuses_and_signals(server: Server, folder: Path) -> None:
    server.start()
    kernel = Kernel(folder, server.environment, str(server.socket))
    process = kernel.process
    assert isinstance(process, ForkedProcess)
    assert process.poll() is None
    with pytest.raises(subprocess.TimeoutExpired):
        process.wait(0.01)
    process.kill()
    assert process.wait(10) == -signal.SIGKILL == process.poll()
    process.terminate()  # has ended: nothing happens
    kernel.end()


def test_exit_handlers_run(server: Server, folder: Path) -> None:
    server.start()
    kernel = Kernel(folder, server.environment, str(server.socket))
    kernel.run(
        "import atexit, pathlib, threading, time\n"
        "atexit.register(lambda: pathlib.Path('handler').write_text('ran'))\n"
        "def work():\n    time.sleep(0.2)\n    pathlib.Path('thread').write_text('ended')\n"
        "threading.Thread(target=work).start()"
    )
    kernel.end()
    assert (folder / "handler").read_text() == "ran"
    assert (folder / "thread").read_text() == "ended"


def test_a_server_ends_when_it_is_idle(server: Server) -> None:
    server.start(idle=0.2)
    assert server.process.wait(20) == 0
    assert not server.socket.exists()


def test_bad_requests_leave_the_server_unharmed(server: Server, folder: Path) -> None:
    server.start()
    for text in (b"", b"\n", b"[1]\n", b'{"command": []}\n', b"\xff\xfe\n", b"x" * 70000):
        import socket  # noqa: PLC0415

        with socket.socket(socket.AF_UNIX) as client:
            client.connect(str(server.socket))
            client.sendall(text)
            client.shutdown(socket.SHUT_WR)
            assert client.recv(10) == b""
    kernel = Kernel(folder, server.environment, str(server.socket))
    assert kernel.forked
    kernel.end()


def test_packages_are_remembered_by_their_last_use() -> None:
    known = {"old": ("a",), "both": ("x",)}
    assert forkserver.merged({"both": ("y",)}, known) == {"both": ("y", "x"), "old": ("a",)}
    many = {f"package{number}": () for number in range(100)}
    assert list(forkserver.merged({"new": ()}, many))[:2] == ["new", "package0"]
    assert len(forkserver.merged({"new": ()}, many)) < 50
