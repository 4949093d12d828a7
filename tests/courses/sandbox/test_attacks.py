"""Submissions that attack: denied in a sandbox, though each attack succeeds without one."""

from __future__ import annotations

import os
import secrets
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from carrel.courses.sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    Sandbox,
    SandboxLimits,
    SandboxSettings,
    StopReason,
)
from carrel.courses.sandbox.local.engine import LocalSandboxes
from carrel.spawners.docker.sandbox import DockerSandboxes

from ...contracts.sandbox_kit import docker_options
from ...docker_engine import DockerEngine
from ...fake_service import eventually
from ...requirements import need
from ..attacks import ATTACKS, SUCCESS, Attack

MIB = 1 << 20
LIMITS = SandboxLimits(
    seconds=60.0,
    cell_seconds=10.0,
    test_seconds=5.0,
    memory_bytes=300 * MIB,
    processes=40,
    file_bytes=8 * MIB,
    disk_bytes=16 * MIB,
)
CHECKOUT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def course_data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("data")
    folder.chmod(0o755)
    (folder / "numbers.csv").write_text("1,2\n")
    return folder


@pytest.fixture(scope="module")
def engine(course_data: Path) -> Iterator[LocalSandboxes]:
    """A sandbox engine that is created with a token in the environment."""
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
    os.environ["CARREL_TOKEN"] = "a secret of the service"
    made = LocalSandboxes(SandboxSettings(data={"/course/data": course_data}, imports=("numpy",)))
    yield made
    made.close()
    del os.environ["CARREL_TOKEN"]


@pytest.fixture
def sandbox(engine: LocalSandboxes) -> Iterator[Sandbox]:
    made = engine.open(LIMITS)
    yield made
    made.close()


@pytest.fixture(scope="module")
def at(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """Targets of the attacks."""
    folder = tmp_path_factory.mktemp("host")
    (folder / "gradebook.db").write_text("everybody's points")
    (folder / "open").mkdir()
    (folder / "open" / "tests.ipynb").write_text("hidden tests")
    abstract = f"carrel-{secrets.token_hex(8)}"
    with (
        socket.create_server(("127.0.0.1", 0)) as tcp,
        socket.socket(socket.AF_UNIX) as unnamed,
        socket.socket(socket.AF_UNIX) as named,
    ):
        unnamed.bind(f"\0{abstract}")
        named.bind(str(folder / "socket"))
        unnamed.listen()
        named.listen()
        yield {
            "secret": str(folder / "gradebook.db"),
            "folders": [str(folder / "open")],
            "checkout": str(CHECKOUT / ".typed"),
            "pid": os.getpid(),
            "port": tcp.getsockname()[1],
            "outside": own_address(),
            "abstract": abstract,
            "socket": str(folder / "socket"),
        }


def own_address() -> str:
    """Return this machine's address in the network, or an unused address."""
    found = [
        each.address
        for addresses in psutil.net_if_addrs().values()
        for each in addresses
        if each.family is socket.AF_INET and not each.address.startswith("127.")
    ]
    return found[0] if found else "192.0.2.1"


def words(run: CellRun) -> str:
    return "".join(str(each.get("text", "")) for each in run.outputs)


def run(sandbox: Sandbox, *sources: str, marked: int = -1) -> list[CellRun]:
    steps = (
        CellStep(cell_id=str(number), source=source, mark=number == marked)
        for number, source in enumerate(sources)
    )
    return list(sandbox.run(steps))


@pytest.mark.parametrize("attack", ATTACKS, ids=[each.name for each in ATTACKS])
def test_an_attack_is_denied_in_a_sandbox(
    attack: Attack, sandbox: Sandbox, at: dict[str, object]
) -> None:
    found, after = run(sandbox, f"at = {at!r}\n{attack.source}", "1")

    assert SUCCESS not in words(found), found
    assert found.status in (CellStatus.OK, CellStatus.ERROR) or found.cause is StopReason.MEMORY
    # It ended only itself.
    assert after.status is CellStatus.OK or found.status is CellStatus.KILLED


def test_a_sandbox_makes_only_sockets_of_af_unix(sandbox: Sandbox) -> None:
    source = """
import ctypes, socket
libc, pair = ctypes.CDLL(None), (ctypes.c_int * 2)()
made = set()
for family in range(64):
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW, socket.SOCK_SEQPACKET):
        made |= {family} if libc.socket(family, kind, 0) >= 0 else set()
        made |= {family} if libc.socketpair(family, kind, 0, pair) == 0 else set()
print(made)
"""
    (found,) = run(sandbox, source)
    assert words(found) == f"{{{int(socket.AF_UNIX)}}}\n"


@pytest.mark.docker
def test_no_attack_succeeds_in_a_container(
    docker_engine: DockerEngine, grading_image: str, at: dict[str, object]
) -> None:
    engine = DockerSandboxes(
        SandboxSettings(image=grading_image, installation="attacks", ahead=0),
        docker_options(docker_engine.url),
    )
    sandbox = engine.open(LIMITS)
    # Attacks that may end the kernel come last.
    ordered = sorted(ATTACKS, key=lambda each: "memory" in each.name)

    found = run(sandbox, *(f"at = {at!r}\n{each.source}" for each in ordered))
    engine.close()

    escaped = [
        each.name for each, cell in zip(ordered, found, strict=True) if SUCCESS in words(cell)
    ]
    assert escaped == []
    assert {each.status for each in found[:-1]} <= {CellStatus.OK, CellStatus.ERROR}


@pytest.mark.parametrize("attack", ATTACKS, ids=[each.name for each in ATTACKS])
def test_the_same_attack_succeeds_without_a_sandbox(
    attack: Attack, at: dict[str, object], tmp_path: Path
) -> None:
    if attack.by_root:
        need("root", os.geteuid() == 0, "only root succeeds without a sandbox")
    if "outside" in attack.source:
        need("network", at["outside"] != "192.0.2.1", "this machine has no network itself")
    program = tmp_path / "attack.py"
    program.write_text(f"at = {at!r}\n{attack.source}")
    # Run in an intermediate process that may be killed.
    between = "import subprocess, sys; subprocess.run(sys.argv[1:])"
    done = subprocess.run(
        [sys.executable, "-c", between, sys.executable, str(program)],
        env={**os.environ, "CARREL_TOKEN": "a secret of the service"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

    assert SUCCESS in done.stdout, done.stderr


# -- one sandbox and another ----------------------------------------------------------------------


def test_a_sandbox_cannot_see_another_one(engine: LocalSandboxes) -> None:
    one, other = engine.open(LIMITS), engine.open(LIMITS)
    leave = """
import os, time
for folder in (".", "/tmp", "/dev/shm"):
    open(f"{folder}/left-by-another", "w").close()
if os.fork() == 0:
    time.sleep(30)
    os._exit(0)
"""
    look = """
import os
print([os.listdir(folder) for folder in (".", "/tmp", "/dev/shm")])
print(sorted(int(name) for name in os.listdir("/proc") if name.isdigit()))
"""
    left, own = run(one, leave, look)
    (seen,) = run(other, look)

    assert left.status is CellStatus.OK
    assert words(own).count("left-by-another") == 3
    assert words(own).endswith("[1, 2, 3]\n")
    assert "left-by-another" not in words(seen)
    assert words(seen).endswith("[1, 2]\n")
    one.close()
    other.close()


def test_terminals_of_one_sandbox_are_not_those_of_another(engine: LocalSandboxes) -> None:
    look = "import os\nprint(sorted(os.listdir('/dev/pts')))"
    one, other = engine.open(LIMITS), engine.open(LIMITS)
    own = run(one, "import pty\nheld = pty.openpty()", look)[1]
    (seen,) = run(other, look)

    assert words(own) == "['0', 'ptmx']\n"
    assert words(seen) == "['ptmx']\n"
    one.close()
    other.close()


def test_after_a_fork_bomb_the_next_submission_runs(engine: LocalSandboxes) -> None:
    bombed = engine.open(SandboxLimits(cell_seconds=1.0, processes=40, memory_bytes=300 * MIB))
    (found,) = run(bombed, "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass")
    bombed.close()
    with_next = engine.open(LIMITS)

    assert found.status in (CellStatus.TIMEOUT, CellStatus.KILLED)
    assert run(with_next, "1")[0].status is CellStatus.OK
    with_next.close()


def test_course_data_can_be_read_and_not_changed(sandbox: Sandbox) -> None:
    read, write = run(
        sandbox, "print(open('/course/data/numbers.csv').read())", "open('/course/data/new', 'w')"
    )

    assert words(read) == "1,2\n\n"
    assert write.status is CellStatus.ERROR


HOLDS_A_SANDBOX = """
import time
from carrel.courses.sandbox.local.engine import LocalSandboxes
from carrel.courses.sandbox.interface import CellStep, SandboxLimits, SandboxSettings
engine = LocalSandboxes(SandboxSettings(imports=()))
sandbox = engine.open(SandboxLimits())
for found in sandbox.run([CellStep(cell_id="1", source={source!r}, mark=True)]):
    print(found.outputs[0]["text"], flush=True)
time.sleep(60)
"""
LASTS = """
import os
if os.fork() == 0:
    os.setsid()
    os.execvp("sleep", ["sleep", {seconds!r}])
print("runs")
"""


def test_sandboxes_of_a_service_that_was_killed_end_with_it() -> None:
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
    seconds = f"{60 + secrets.randbelow(10**6) / 10**6:.6f}"
    program = HOLDS_A_SANDBOX.format(source=LASTS.format(seconds=seconds))

    def lasting() -> list[int]:
        return [
            each.pid
            for each in psutil.process_iter(["cmdline"])
            if each.info["cmdline"] == ["sleep", seconds]
        ]

    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE) as service:
        assert service.stdout is not None
        assert service.stdout.readline() == b"runs\n"
        eventually(lambda: len(lasting()) == 1)
        service.kill()

    eventually(lambda: not lasting())


# -- the phase of tests ------------------------------------------------------------------------

DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    for number in range(1, 32):
        try: signal.signal(number, signal.SIG_IGN)
        except OSError: pass
    if os.fork(): os._exit(0)
    while True:
        with open("beat", "w") as file: file.write(str(time.monotonic()))
        time.sleep(0.02)
"""
BEATS = """
import time
def beat():
    try: return open("beat").read()
    except OSError: return ""
before, deadline = beat(), time.monotonic() + {seconds}
while beat() == before and time.monotonic() < deadline: time.sleep(0.01)
print("alive" if beat() != before else "silent")
"""


def test_processes_left_by_a_cell_end_before_the_tests(sandbox: Sandbox) -> None:
    _, alive, _ = run(sandbox, DAEMON, BEATS.format(seconds=5), "", marked=2)

    assert words(alive) == "alive\n"
    assert words(sandbox.test("2", BEATS.format(seconds=0.5))) == "silent\n"


def test_later_cells_cannot_inspect_a_snapshot(sandbox: Sandbox) -> None:
    look = """
import os
for pid in sorted(int(name) for name in os.listdir("/proc") if name.isdigit()):
    if pid not in (1, os.getpid()):
        try: open(f"/proc/{pid}/mem", "rb").close()
        except OSError as error: print("denied")
        else: print("open")
"""
    start = "import subprocess\nstarted = subprocess.Popen(['sleep', '9'])"
    _, denied, _, both = run(sandbox, "", look, start, look, marked=1)

    assert words(denied) == "denied\n"
    # With an ordinary program the attack succeeds: the test can fail.
    assert words(both) == "denied\nopen\n"


def test_a_killed_snapshot_is_a_test_that_did_not_run(sandbox: Sandbox) -> None:
    kill = """
import os, signal
for name in os.listdir("/proc"):
    if name.isdigit() and int(name) not in (1, os.getpid()): os.kill(int(name), signal.SIGKILL)
"""
    run(sandbox, "", kill, marked=0)

    assert sandbox.test("0", "1").status in (CellStatus.NOT_RUN, CellStatus.KILLED)


FORGE = """
import json, os
def frame(message):
    body = json.dumps(message).encode()
    return len(body).to_bytes(4, "big") + body
forged = (
    frame({"done": "", "status": "ok"}) + frame({"done": True, "status": "ok"})
    + frame({"question": 1}) + frame({"answer": 1}) + frame({"status": "ok"})
)
for number in range(3, 64):
    try: os.write(number, forged)
    except OSError: pass
"""


def test_forged_messages_make_no_test_pass(sandbox: Sandbox) -> None:
    forged, wrong = run(sandbox, FORGE, "1 / 0")[:2]
    run(sandbox, f"def f():\n    exec({FORGE!r})\n    return 1", "", marked=1)

    assert forged.status is CellStatus.OK
    assert wrong.status is CellStatus.ERROR
    assert sandbox.test("1", "assert f() == 2").status is CellStatus.ERROR


def test_a_message_without_end_is_the_end_of_its_kernel_alone(sandbox: Sandbox) -> None:
    flood = """
import os
for number in range(3, 64):
    try: os.write(number, b"\\xff\\xff\\xff\\xff" + bytes(100))
    except OSError: pass
1
"""
    _, _, found = run(sandbox, "x = 1", "", flood, marked=1)

    assert (found.status, found.cause) == (CellStatus.KILLED, StopReason.OUTPUT)
    assert sandbox.test("1", "assert x == 1").status is CellStatus.OK


# -- tampering in the student's own kernel -----------------------------------------------------

TAMPERED = {
    "the builtin sum": "import builtins\nbuiltins.sum = lambda *a: 42",
    "the builtin __import__": "import builtins\nbuiltins.__import__ = lambda *a, **k: None",
    "showtraceback of the shell": "type(get_ipython()).showtraceback = lambda *a, **k: None",
    "run_cell of this shell": "get_ipython().run_cell = lambda *a, **k: None",
    "how cells are changed before they run": "get_ipython().ast_transformers.append(object())",
    "the name all, which the test uses": "def all(values): return True",
    "numpy.allclose": "import numpy\nnumpy.allclose = lambda *a, **k: True",
    "a trace function that sees each step": "import sys\nsys.settrace(lambda *a: None)",
}


@pytest.mark.parametrize("what", TAMPERED)
def test_changed_functions_are_named(sandbox: Sandbox, what: str) -> None:
    run(sandbox, TAMPERED[what], "", marked=1)

    found = sandbox.test("1", "assert all([True])")

    # A submission that replaced the execution of cells does not pass either.
    assert what in found.tampered or found.status is CellStatus.KILLED, found


@pytest.mark.parametrize("name", ["isinstance", "len", "open", "dict", "print"])
def test_a_submission_that_breaks_builtins_does_not_pass(sandbox: Sandbox, name: str) -> None:
    run(sandbox, f"import builtins\nbuiltins.{name} = lambda *a, **k: True", "", marked=1)

    found = sandbox.test("1", "assert 1 == 1")

    assert found.tampered or found.status is not CellStatus.OK


def test_ordinary_work_is_not_reported_as_tampering(sandbox: Sandbox) -> None:
    usual = """
import math, random, sys
import numpy as np
from math import *
from numpy import *
np.random.seed(1)
np.set_printoptions(precision=3)
np.seterr(all="ignore")
sys.setrecursionlimit(5000)
max_of, sum_of = max, sum
def mean(values): return sum_of(values) / len(values)
class list_of: pass
_ = 5
"""
    run(sandbox, usual, "input = [3, 4]", "mean([1, 2])", "1 / 0", "", marked=4)

    found = sandbox.test("4", "assert mean([1, 2]) == 1.5\nassert isinstance(np.ones(2), object)")

    assert (found.status, found.tampered) == (CellStatus.OK, ())


def test_in_one_kernel_a_function_can_read_the_test_that_calls_it(sandbox: Sandbox) -> None:
    """This cannot be prevented in one kernel; it is why tests are isolated where possible."""
    peek = """
import sys
def f():
    import linecache
    frame = sys._getframe(1)
    print("".join(linecache.getlines(frame.f_code.co_filename)))
"""
    run(sandbox, peek, "", marked=1)

    assert "assert f() == 'secret'" in words(sandbox.test("1", "assert f() == 'secret'"))
