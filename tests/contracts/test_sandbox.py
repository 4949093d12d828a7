"""Contract of sandbox engines."""

from __future__ import annotations

import shutil
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import pytest

from carrel.courses.sandbox.interface import (
    CellRun,
    CellStatus,
    CellStep,
    Sandbox,
    SandboxEngine,
    SandboxLimits,
    SandboxSettings,
    StopReason,
)
from carrel.courses.sandbox.local.engine import LocalSandboxes
from carrel.hub.errors import InvalidInput, TooLarge, Unavailable
from carrel.spawners.docker.sandbox import DockerSandboxes

from ..requirements import need
from .sandbox_kit import docker_options

MIB = 1 << 20
SHORT = SandboxLimits(
    seconds=30.0,
    cell_seconds=1.0,
    test_seconds=1.0,
    memory_bytes=300 * MIB,
    processes=32,
    file_bytes=8 * MIB,
    disk_bytes=16 * MIB,
    output_bytes=MIB // 4,
    answer_bytes=MIB // 4,
)
Open = Callable[..., Sandbox]


@pytest.fixture(scope="module", params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def engine(request: pytest.FixtureRequest) -> Iterator[SandboxEngine]:
    """The sandbox engines; containers use the image for grading."""
    made: SandboxEngine
    if request.param == "local":
        need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
        made = LocalSandboxes(SandboxSettings())
    else:
        url = request.getfixturevalue("docker_engine").url
        made = DockerSandboxes(
            SandboxSettings(
                image=request.getfixturevalue("grading_image"), installation="sandboxes"
            ),
            docker_options(url),
        )
    yield made
    made.close()


@pytest.fixture
def open_sandbox(engine: SandboxEngine) -> Iterator[Open]:
    """Open sandboxes that are closed after the test."""
    made: list[Sandbox] = []

    def opened(limits: SandboxLimits = SHORT, files: Mapping[str, bytes] | None = None) -> Sandbox:
        made.append(engine.open(limits, files))
        return made[-1]

    yield opened
    for sandbox in made:
        sandbox.close()


def run(sandbox: Sandbox, *sources: str, marked: Sequence[int] = ()) -> list[CellRun]:
    """Run cells, numbered in order; ``marked`` ones leave a snapshot."""
    steps = (
        CellStep(cell_id=str(number), source=source, mark=number in marked)
        for number, source in enumerate(sources)
    )
    return list(sandbox.run(steps))


def shown(run: CellRun) -> str:
    """Return streams and results as a reader sees them."""
    parts = []
    for output in run.outputs:
        data = output.get("data")
        assert isinstance(data, dict | None)
        parts.append(str(data["text/plain"] if data else output.get("text", "")))
    return "".join(parts)


def errors(run: CellRun) -> list[str]:
    return [str(each["ename"]) for each in run.outputs if each["output_type"] == "error"]


# -- what a notebook does -----------------------------------------------------------------------


def test_cells_run_in_order_in_one_kernel_and_show_what_a_notebook_shows(
    open_sandbox: Open,
) -> None:
    first, second, third = run(open_sandbox(), "print('a')\nx = 2", "x * 21", "1 / 0")

    assert first.outputs == ({"output_type": "stream", "name": "stdout", "text": "a\n"},)
    assert second.outputs == (
        {
            "output_type": "execute_result",
            "execution_count": 2,
            "data": {"text/plain": "42"},
            "metadata": {},
        },
    )
    assert (third.status, errors(third)) == (CellStatus.ERROR, ["ZeroDivisionError"])
    assert [each.status for each in (first, second)] == [CellStatus.OK, CellStatus.OK]


CELLS = (
    ("import asyncio\nawait asyncio.sleep(0)\n'awaited'", "'awaited'"),
    ("!echo from a shell", "from a shell\r\n"),
    ("%%bash\necho from bash", "from bash\n"),
    ("import os\nos.system('echo past Python');", "past Python\n"),
    ("import sys\nprint('e', file=sys.stderr)", "e\n"),
    ("%time None", "CPU times"),
    ("from IPython.display import display\ndisplay({'a': 1})", "{'a': 1}"),
    (
        "print('gone')\nfrom IPython.display import clear_output\nclear_output()\nprint(1)",
        "1\n",
    ),
    ("from IPython.display import display\nh = display(1, display_id=True)\nh.update(2)", "2"),
    ("print('\\ud800')", "?\n"),
    ("open('data.csv').read()", "'1,2'"),
    ("open('own.txt', 'w').write('abc')", "3"),
    ("__name__", "'__main__'"),
    ("import pickle\nclass A: pass\ntype(pickle.loads(pickle.dumps(A()))) is A", "True"),
    ("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(7)']);", "7\n"),
)


def test_a_cell_does_what_it_does_in_a_notebook(open_sandbox: Open) -> None:
    sandbox = open_sandbox(SandboxLimits(), {"data.csv": b"1,2"})

    found = run(sandbox, *(source for source, _ in CELLS))

    wrong = [
        (source, each)
        for (source, expected), each in zip(CELLS, found, strict=True)
        if each.status is not CellStatus.OK or not shown(each).startswith(expected)
    ]
    assert wrong == []


def test_input_of_a_cell_is_an_error(open_sandbox: Open) -> None:
    (found,) = run(open_sandbox(), "input('Your name? ')")

    assert errors(found) == ["RuntimeError"]


def test_random_numbers_are_others_in_each_sandbox_and_those_of_the_seed_in_a_snapshot(
    open_sandbox: Open,
) -> None:
    draw = "import random\nprint(random.random())"
    one, other = (run(open_sandbox(), draw)[0] for _ in range(2))
    sandbox = open_sandbox()
    _, there = run(sandbox, "import random\nrandom.seed(7)", "random.random()", marked=[1])

    assert shown(one) != shown(other)
    assert shown(sandbox.test("1", "random.random()")) == shown(there)


# -- snapshots, tests and questions ------------------------------------------------------------


def test_a_test_runs_in_the_kernel_as_it_was_before_the_marked_cell(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "x = 1", "x = 2", "x = 3", "x = 4", marked=[1, 3])

    assert shown(sandbox.test("3", "x")) == "3"
    assert shown(sandbox.test("1", "x")) == "1"
    assert sandbox.test("1", "x").status is CellStatus.NOT_RUN
    assert sandbox.test("2", "x").status is CellStatus.NOT_RUN


def test_a_failed_test_reports_its_error(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "def f(): return 1", "", marked=[1])

    found = sandbox.test("1", "assert f() == 2, 'f gives two'")

    assert (found.status, errors(found)) == (CellStatus.ERROR, ["AssertionError"])
    assert found.tampered == ()


def test_no_student_cell_runs_after_the_first_test(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "", marked=[0])
    sandbox.test("0", "1")

    assert [each.status for each in run(sandbox, "1")] == [CellStatus.NOT_RUN]


def test_an_isolated_test_asks_for_the_students_definitions(open_sandbox: Open) -> None:
    student, examiner = open_sandbox(), open_sandbox()
    run(student, "def square(x):\n    return x * x", "", marked=[1])
    run(examiner, "", marked=[0])
    asked = []

    def answer(question: object) -> object:
        asked.append(question)
        found = student.ask("1", question)  # type: ignore[arg-type]
        assert found.status is CellStatus.OK
        return found.value

    found = examiner.test("0", "assert square(12) == 144\nassert square(3) == 9", answer)  # type: ignore[arg-type]

    assert found.status is CellStatus.OK, found
    assert len(asked) >= 2


def test_a_missing_answer_times_out_and_the_next_question_is_answered(
    open_sandbox: Open,
) -> None:
    sandbox = open_sandbox()
    run(
        sandbox,
        "class Slow:\n    def __call__(self):\n        while True: pass\nslow = Slow()\nfast = 5",
        "",
        marked=[1],
    )
    names = ["name", "slow"], ["name", "fast"]
    assert sandbox.ask("1", names[1]).status is CellStatus.OK

    late = sandbox.ask("1", ["call", ["name", "slow"], [], {}])

    assert late.status in (CellStatus.TIMEOUT, CellStatus.OK)
    assert sandbox.ask("1", names[1]).status is CellStatus.OK


# -- limits ------------------------------------------------------------------------------------


def test_an_endless_cell_is_interrupted_and_later_cells_run(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    endless, after = run(sandbox, "while True: pass", "'after'")

    assert (endless.status, endless.cause) == (CellStatus.TIMEOUT, StopReason.TIME)
    assert errors(endless) == ["KeyboardInterrupt"]
    assert shown(after) == "'after'"
    assert sandbox.close().cause is StopReason.TIME


def test_a_cell_that_ignores_the_interrupt_is_killed_and_earlier_tests_run(
    open_sandbox: Open,
) -> None:
    sandbox = open_sandbox()
    stubborn = "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass"
    _, _, killed, after = run(sandbox, "x = 5", "", stubborn, "1", marked=[1, 3])

    assert (killed.status, killed.cause) == (CellStatus.KILLED, StopReason.TIME)
    assert after.status is CellStatus.NOT_RUN
    assert shown(sandbox.test("1", "x")) == "5"
    assert sandbox.test("3", "x").status is CellStatus.NOT_RUN


def test_all_cells_together_have_a_time_limit(open_sandbox: Open) -> None:
    limits = SandboxLimits(seconds=0.8, cell_seconds=0.5)
    found = run(open_sandbox(limits), *["import time\ntime.sleep(0.4)"] * 4)

    assert found[0].status is CellStatus.OK
    assert found[-1].status is CellStatus.NOT_RUN
    assert StopReason.TIME in {each.cause for each in found}


def test_an_endless_test_times_out_and_the_next_one_runs(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "def f():\n    while True: pass", "", "", marked=[1, 2])

    assert sandbox.test("1", "f()").status is CellStatus.TIMEOUT
    assert sandbox.test("2", "1").status is CellStatus.OK


def test_memory_is_limited(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    found = run(sandbox, "x = 1", "held = bytearray(600 << 20)\nheld[::4096] = held[::4096]")[1]

    assert found.status in (CellStatus.ERROR, CellStatus.KILLED)
    assert found.cause is StopReason.MEMORY
    assert sandbox.close().sentence == "The code used more than 300 MiB of memory."


def test_memory_of_several_processes_is_limited_together(open_sandbox: Open) -> None:
    bomb = """
import os, time
for _ in range(6):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        held[::4096] = b"1" * len(held[::4096])
        time.sleep(1)
        os._exit(0)
for _ in range(6):
    pid, status = os.wait()
    print("ended", status)
"""
    sandbox = open_sandbox(SandboxLimits(cell_seconds=6.0, memory_bytes=300 * MIB))
    (found,) = run(sandbox, bomb)

    assert "ended 9" in shown(found) or found.cause is StopReason.MEMORY


def test_the_number_of_processes_is_limited(open_sandbox: Open) -> None:
    bomb = """
import os, time
made = 0
try:
    while made < 200:
        if os.fork() == 0:
            time.sleep(60)
            os._exit(0)
        made += 1
finally:
    print(made)
"""
    sandbox = open_sandbox(replace(SHORT, cell_seconds=20.0))
    (found,) = run(sandbox, bomb)

    assert errors(found) == ["BlockingIOError"]
    assert found.cause is StopReason.PROCESSES
    assert int(shown(found)) < SHORT.processes


def test_file_size_and_disk_are_limited(open_sandbox: Open) -> None:
    write = "open({name!r}, 'wb').write(bytes({size} << 20));"
    big, several = (
        [write.format(name="big", size=9)],
        [write.format(name=f"/tmp/{number}", size=6) for number in range(4)],
    )
    for sources in (big, several):
        found = run(open_sandbox(), *sources)[-1]
        assert errors(found) == ["OSError"]
        assert found.cause is StopReason.DISK


def test_endless_output_kills_the_cell_and_keeps_what_was_shown(open_sandbox: Open) -> None:
    for source in ("while True: print('x' * 1000)", "import os\nos.system('yes')"):
        sandbox = open_sandbox(SandboxLimits(cell_seconds=20.0, output_bytes=MIB // 4))
        (found,) = run(sandbox, source)
        assert (found.status, found.cause) == (CellStatus.KILLED, StopReason.OUTPUT)
        assert 0 < len(shown(found)) < MIB


# -- ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "source",
    [
        "import os\nos._exit(0)",
        "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
        "import ctypes\nctypes.string_at(0)",
        "exit()",
    ],
)
def test_a_cell_that_ends_the_kernel_leaves_earlier_snapshots(
    open_sandbox: Open, source: str
) -> None:
    sandbox = open_sandbox()
    found = run(sandbox, "x = 1", "", source, "x", marked=[1])

    assert found[-1].status is CellStatus.NOT_RUN
    assert shown(sandbox.test("1", "x")) == "1"


def test_sys_exit_is_an_error_of_its_cell(open_sandbox: Open) -> None:
    found = run(open_sandbox(), "import sys\nsys.exit(0)", "1")

    assert [each.status for each in found] == [CellStatus.ERROR, CellStatus.OK]
    assert errors(found[0]) == ["SystemExit"]


def test_a_test_ended_by_student_code_does_not_pass(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "import os\ndef f(): os._exit(0)", "", marked=[1])

    assert sandbox.test("1", "f()").status is CellStatus.KILLED


def test_sandboxes_are_opened_by_several_threads_at_once(open_sandbox: Open) -> None:
    answers: list[str] = []

    def one(number: int) -> None:
        answers.append(shown(run(open_sandbox(), f"{number} * 10")[0]))

    threads = [threading.Thread(target=one, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert sorted(answers) == ["0", "10", "20", "30", "40", "50"]


def test_a_closed_sandbox_can_be_closed_again_and_runs_nothing(open_sandbox: Open) -> None:
    sandbox = open_sandbox()
    run(sandbox, "1")

    assert sandbox.close() == sandbox.close()
    assert sandbox.close().cause is StopReason.OK
    assert run(sandbox, "1")[0].status is not CellStatus.OK


@pytest.mark.parametrize("name", ["../up", "/etc/passwd", "", "a/../../b", "."])
def test_file_names_cannot_leave_the_folder(open_sandbox: Open, name: str) -> None:
    with pytest.raises(InvalidInput):
        open_sandbox(files={name: b""})


def test_files_larger_than_the_disk_are_refused(open_sandbox: Open) -> None:
    with pytest.raises(TooLarge):
        open_sandbox(files={"big": bytes(17 * MIB)})


def test_a_closed_engine_makes_no_sandbox() -> None:
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
    engine = LocalSandboxes(SandboxSettings())
    engine.close()

    with pytest.raises(Unavailable):
        engine.open(SHORT)
