"""Sandboxes of an ordinary account: no cgroup, no privileges, the same isolation."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest

from carrel.courses.sandbox.interface import SandboxSettings
from carrel.courses.sandbox.local import bubblewrap, doctor
from carrel.courses.sandbox.local.engine import explained
from carrel.hub.errors import BackendFailed, InvalidInput
from carrel.hub.records.diagnostics import Severity

from ....requirements import need

ROOT = Path(__file__).parents[4]
SYSTEM = "/usr/bin/python3"
PROGRAM = """
import json
from dataclasses import asdict
from carrel.courses.sandbox.local.doctor import finding
from carrel.courses.sandbox.local.engine import LocalSandboxes
from carrel.courses.sandbox.interface import CellStep, SandboxLimits, SandboxSettings

MIB = 1 << 20
limits = SandboxLimits(
    cell_seconds=10, memory_bytes=200 * MIB, processes=40, disk_bytes=16 * MIB,
    file_bytes=8 * MIB,
)
SEVERAL = '''
import os, time
for _ in range(4):
    if os.fork() == 0:
        held = bytearray(100 << 20)
        held[::4096] = b"1" * len(held[::4096])
        time.sleep(20)
        os._exit(0)
time.sleep(5)
'''
FORK = '''
import os, time
try:
    for made in range(100):
        if os.fork() == 0:
            time.sleep(20)
            os._exit(0)
except OSError:
    print("no more than", made)
'''
WRITE = '''
try:
    for number in range(4):
        open(f"/tmp/{number}", "wb").write(bytes(6 << 20))
except OSError as error:
    print(error.strerror)
'''
engine = LocalSandboxes(SandboxSettings(imports=()))
said = []
for source in ("import os\\nprint(os.getuid(), sorted(os.listdir('/home/student')))",
               "held = bytearray(900 << 20)", SEVERAL, FORK, WRITE):
    sandbox = engine.open(limits)
    steps = [CellStep(cell_id="1", source="x = 1"), CellStep(cell_id="2", source=source, mark=True)]
    said.append([asdict(each) for each in sandbox.run(steps)][-1])
    said[-1]["test"] = sandbox.test("2", "x").status
    sandbox.close()
engine.close()
print(json.dumps({"said": said, "finding": asdict(finding())}))
"""


def needed_by(name: str, found: dict[str, Distribution]) -> dict[str, Distribution]:
    """Return the packages that a distribution needs, itself included."""
    if name not in found:
        found[name] = distribution(name)
        for requirement in found[name].requires or ():
            if ";" not in requirement:
                needed_by(re.split(r"[\s<>=!~\[(]", requirement)[0].lower(), found)
    return found


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[Path]:
    """A small environment that all accounts can read; returns its Python."""
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")
    need("root", os.geteuid() == 0, "who is no root runs all other tests as an ordinary user")
    version = subprocess.run([SYSTEM, "-V"], capture_output=True, text=True, check=False).stdout
    need("python", version.removeprefix("Python ")[:4] >= "3.11", f"{SYSTEM}: {version}")
    folder = Path(tempfile.mkdtemp(prefix="carrel-user-"))
    folder.chmod(0o755)
    subprocess.run([SYSTEM, "-m", "venv", "--without-pip", folder / "venv"], check=True)
    (packages,) = folder.glob("venv/lib/python*/site-packages")
    for each in needed_by("ipython", {}).values():
        for file in each.files or ():
            if ".." not in file.parts and "__pycache__" not in file.parts:
                target = packages / file
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(str(file.locate()), target)
    skipped = shutil.ignore_patterns("__pycache__", "static", "templates", "sample")
    for part in ("hub", "courses"):
        shutil.copytree(ROOT / part, packages / "carrel" / part, ignore=skipped)
    shutil.copyfile(ROOT / "__init__.py", packages / "carrel" / "__init__.py")
    (folder / "program.py").write_text(PROGRAM)
    subprocess.run(["chmod", "-R", "o+rX", folder], check=True)
    yield folder
    shutil.rmtree(folder)


@pytest.mark.slow
def test_an_ordinary_user_runs_sandboxes_with_the_same_isolation(elsewhere: Path) -> None:
    done = subprocess.run(
        [
            *("setpriv", "--reuid", "65533", "--regid", "65533", "--clear-groups"),
            *(str(elsewhere / "venv/bin/python"), str(elsewhere / "program.py")),
        ],
        cwd=elsewhere,
        env={"PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    who, memory, several, processes, disk = found["said"]

    assert who["outputs"][0]["text"] == "1000 ['.shm', '.tmp']\n"
    assert memory["cause"] == "memory"
    assert (several["status"], several["cause"]) == ("killed", "memory")
    assert processes["outputs"][0]["text"].startswith("no more than 3")
    assert disk["outputs"][0]["text"] == "No space left on device\n"
    # The test of the snapshot before the cell runs, however the cell ended.
    assert {each["test"] for each in found["said"]} == {"ok"}
    assert found["finding"]["verdict"] == "fine"


def test_the_doctor_runs_a_sandbox() -> None:
    need("bwrap", shutil.which("bwrap"), "bubblewrap is not installed")

    assert doctor.finding().verdict is Severity.FINE


def test_the_doctor_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bubblewrap, "program", lambda: None)

    found = doctor.finding()

    assert found.verdict is Severity.WARNING
    assert "bubblewrap" in found.what
    assert found.mend == "Install the package bubblewrap."


def test_where_user_namespaces_are_forbidden_the_sentence_says_who_allows_them() -> None:
    said = explained("bwrap: No permissions to create new namespace, likely because …")

    assert said.startswith("this account cannot create user namespaces.")
    assert "kernel.unprivileged_userns_clone=1" in said


@pytest.mark.parametrize("target", ["course", "/", "/usr", "/course/../etc", "/tmp"])
def test_course_data_cannot_replace_system_folders(target: str, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    with pytest.raises((InvalidInput, BackendFailed)):
        bubblewrap.command(SandboxSettings(data={target: tmp_path}), orders=3, users=4)
