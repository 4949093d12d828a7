"""Command jobs, working folders, uploads, memory: real runners, a fake service."""

from __future__ import annotations

import io
import os
import signal
import tarfile
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from carrel.hub.attempts.output_limits import MIB
from carrel.hub.attempts.reports import read_reports
from carrel.hub.attempts.spec import REPORTS
from carrel.spawners.processes import lease_processes

from ...attempts import deadline, wait_for_end
from ...conftest import Desk
from ...notebooks import notebook, printed, read, statuses

STEPS_A_SECOND = 5
EAT = "data = []\nwhile True: data.append(b'x' * 10_000_000)"


def python(code: str) -> tuple[str, ...]:
    return ("python", "-c", code)


def steps(desk: Desk) -> list[dict[str, Any]]:
    known = desk.service.events
    return [known[n]["data"] for n in sorted(known) if known[n]["kind"] == "progress"]


def test_a_command_runs_in_its_working_folder_and_keeps_files(desk: Desk) -> None:
    code = "import os; print(os.getcwd()); open(os.environ['CARREL_OUTPUT_DIR'] + '/a', 'w')"
    order = desk.order(command=python(code), workdir="project/deep")
    (order.home / "project" / "deep").mkdir(parents=True)
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert desk.service.kinds() == ["ended"]
    assert desk.service.ended["code"] == "succeeded"
    log = (order.folder / "log.txt").read_text()
    assert log.startswith(f"{order.home.resolve()}/project/deep\n")
    assert [file.name for file in (order.folder / "files").iterdir()] == ["a"]


def test_a_failed_command_is_reported_with_its_status_and_last_lines(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", "echo out; echo err >&2; exit 3"))
    assert wait_for_end(desk, order, desk.backend.start(order)) == 1
    assert desk.service.ended == {
        "code": "command_failed",
        "message": "`sh -c 'echo out; echo err >&2; exit 3'` exited with status 3",
        "details": "out\nerr\n",
    }


def test_a_command_that_dies_by_a_signal_is_not_called_out_of_memory(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", "kill -9 $$"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "command_failed"
    assert "was ended by signal 9, SIGKILL" in desk.service.ended["message"]


def test_a_missing_program_is_reported(desk: Desk) -> None:
    order = desk.order(command=("no-such-program",))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "invalid_job"
    assert 'the program "no-such-program" was not found' in desk.service.ended["message"]


def test_a_command_that_asks_for_input_is_explained(desk: Desk) -> None:
    order = desk.order(command=python("input('name? ')"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert "a job cannot answer" in desk.service.ended["message"]


def test_a_notebook_that_asks_for_input_is_told_to_use_a_parameter(desk: Desk) -> None:
    order = desk.order(notebook("1", "name = input('name? ')"))
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "cell_error"
    assert desk.service.ended["message"] == (
        "error in cell 2: it calls input(), but a job cannot ask for input. "
        'Use a parameter instead: a variable in a cell tagged "parameters".'
    )


def test_progress_of_a_command_and_of_a_cell(desk: Desk) -> None:
    code = "import carrel\nfor n in range(50_000): carrel.progress(n + 1, 50_000, f'epoch {n}')"
    order = desk.order(command=python(code))
    began = time.monotonic()
    wait_for_end(desk, order, desk.backend.start(order))
    took = time.monotonic() - began
    assert steps(desk)[-1] == {"done": 50_000, "of": 50_000, "text": "epoch 49999"}
    assert len(steps(desk)) < 2 + took * STEPS_A_SECOND
    desk.service.events.clear()
    bar = "from tqdm import tqdm\nfor n in tqdm(range(300), desc='train'): pass"
    order = desk.order(notebook("1", bar))
    wait_for_end(desk, order, desk.backend.start(order))
    assert steps(desk)[-1] == {"number": 2, "done": 300, "of": 300, "text": "train"}


def test_reports_of_a_command_and_of_a_cell_are_in_the_attempt_s_folder(desk: Desk) -> None:
    code = "import carrel\nfor n in range(3): carrel.report('loss', 1 / (n + 1), n)"
    order = desk.order(command=python(code))
    wait_for_end(desk, order, desk.backend.start(order))
    assert read_reports(order.folder)["loss"].values == (1.0, 1 / 2, 1 / 3)
    (order.folder / REPORTS).unlink()
    order = desk.order(notebook("1", code))
    wait_for_end(desk, order, desk.backend.start(order))
    assert read_reports(order.folder)["loss"].values == (1.0, 1 / 2, 1 / 3)


def test_a_command_that_is_stopped_is_interrupted_first(desk: Desk) -> None:
    # A shell that gets the signal just before it starts `sleep` would handle it when that ends.
    script = """
import signal, sys
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
open("go", "w").close()
signal.sigwait([signal.SIGINT])
print("saved")
sys.exit(1)
"""
    order = desk.order(command=python(script))
    os.mkfifo(order.home / "go")
    handle = desk.backend.start(order)
    (order.home / "go").read_text()
    os.kill(handle.pid, signal.SIGTERM)
    wait_for_end(desk, order, handle)
    assert (order.folder / "log.txt").read_text().startswith("saved\n")
    assert not lease_processes.scan({order.lease_id: None})[order.lease_id]


def test_a_command_does_not_outlive_its_runner(desk: Desk) -> None:
    order = desk.order(command=("sh", "-c", "echo > go; exec sleep 600"))
    os.mkfifo(order.home / "go")
    handle = desk.backend.start(order)
    (order.home / "go").read_text()
    commands = psutil.Process(handle.pid).children(recursive=True)
    os.kill(handle.pid, signal.SIGKILL)
    assert lease_processes.wait_gone(commands, deadline())


def test_case_23_a_kernel_over_its_memory_limit_is_killed_and_reported(desk: Desk) -> None:
    order = desk.order(notebook("print('first')", EAT), memory_bytes=400 * MIB)
    wait_for_end(desk, order, desk.backend.start(order))
    ended = desk.service.ended
    assert ended["code"] == "out_of_memory"
    assert ended["message"].startswith("Killed for memory in cell 2: its processes used ")
    assert " of at most 400 MiB. It is not retried." in ended["message"]
    assert ended["memory"]["used"] > ended["memory"]["limit"] == 400 * MIB
    executed = read(order.folder / "output.ipynb")
    assert statuses(executed) == ["completed", "failed"]
    assert executed.metadata.carrel.outcome == "out_of_memory"
    assert printed(executed) == "first\n"


def test_case_23_the_memory_of_all_its_processes_counts(desk: Desk) -> None:
    children = f"""
import subprocess, sys
eat = "d = b'x' * 150_000_000; import time; time.sleep(600)"
left = [subprocess.Popen([sys.executable, '-c', eat], start_new_session=True) for n in range(3)]
left[0].wait()
{EAT}
"""
    order = desk.order(command=python(children), memory_bytes=400 * MIB)
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "out_of_memory"
    assert not lease_processes.scan({order.lease_id: None})[order.lease_id]


def test_the_memory_that_processes_share_counts_once(desk: Desk) -> None:
    """Such as that of a fork of the kernel, which saves the variables between two cells."""
    slow = "class Slow:\n    def __reduce__(self):\n        time.sleep(2)\n        return str, ()"
    cells = (
        f"import time\n{slow}\nslow, data = Slow(), b'x' * {250 * MIB}\ntime.sleep(0.2)",
        "time.sleep(1)",
    )
    order = desk.order(notebook(*cells), memory_bytes=450 * MIB)
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "succeeded", desk.service.ended


def archive(path: Path, *entries: tuple[str, bytes | None, str]) -> Path:
    """Return an archive with these entries: name, content (None for a link), target of the link."""
    with tarfile.open(path, "w:gz") as tar:
        for name, content, target in entries:
            entry = tarfile.TarInfo(name)
            if content is None:
                entry.type = tarfile.SYMTYPE
                entry.linkname = target
            else:
                entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content or b""))
    return path


def test_an_uploaded_folder_is_the_working_folder(desk: Desk, tmp_path: Path) -> None:
    upload = archive(tmp_path / "up.tar.gz", ("src/train.py", b"print('ran')", ""))
    order = desk.order(command=("python", "train.py"), archive=upload, workdir="src")
    assert wait_for_end(desk, order, desk.backend.start(order)) == 0
    assert (order.folder / "log.txt").read_text().startswith("ran\n")


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        (("../home2/x", b"", ""), "a path that leads outside"),
        (("/etc/x", b"", ""), "a path that leads outside"),
        (("link", None, "/etc"), "a link or a special file"),
    ],
)
def test_case_28_an_upload_that_reaches_out_is_refused(
    desk: Desk, tmp_path: Path, entry: tuple[str, bytes | None, str], said: str
) -> None:
    upload = archive(tmp_path / "up.tar.gz", ("ok.py", b"1", ""), entry)
    order = desk.order(command=("python", "ok.py"), archive=upload)
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "invalid_job"
    assert said in desk.service.ended["message"]
    assert not (order.folder / "work").exists()


@pytest.mark.parametrize("workdir", ["..", "../home-of-another", "/etc", "link", "missing"])
def test_a_working_folder_lies_below_the_home(desk: Desk, workdir: str) -> None:
    order = desk.order(command=("true",), workdir=workdir)
    (order.home / "link").symlink_to("/etc")
    (desk.folder / "home-of-another").mkdir()
    wait_for_end(desk, order, desk.backend.start(order))
    assert desk.service.ended["code"] == "invalid_job"
    assert f"the working folder {workdir} " in desk.service.ended["message"]
