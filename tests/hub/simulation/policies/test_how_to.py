"""The policy, commands and pages of the how-to work as it describes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from textwrap import dedent

import pytest

from carrel.hub.simulation.policies.policy import Policy

from ..kit import job, played, shared, spans

PAGE = Path(__file__).parents[4] / "docs" / "how-to" / "simulate.md"
PICTURED = re.compile(r'href="(\.\./_static/simulations/[^"]+)"')
MOST_BYTES = 300_000
EXAMPLE = re.compile(r"```python\n(.*?)```", re.DOTALL)
ANNOUNCED = re.compile(r"```toml\n(.*?)```", re.DOTALL)
COMMAND = re.compile(r"^    (carrel simulate (?:.*\\\n)*.*)$", re.MULTILINE)
GANGS = re.compile(r"^((?:    .*members.*\n)(?:    \S.*\n)+)", re.MULTILINE)
OWN = "submitted_at,seconds,devices\n0,100,47\n1,5,2\n2,10,48\n"


def command(part: str) -> list[str]:
    """Return the words of the only command of the page that contains this text."""
    found = COMMAND.findall(PAGE.read_text(encoding="utf-8"))
    (text,) = (text for text in found if part in text)
    return shlex.split(text.replace("\\\n", " "))


def typed(words: list[str], folder: Path, *more: str) -> str:
    """Return the output of a command in a folder, whose packages count as installed."""
    assert words[0] == "carrel"
    path = os.pathsep.join(filter(None, [str(folder), os.environ.get("PYTHONPATH", "")]))
    done = subprocess.run(
        [sys.executable, "-m", "carrel.hub.cli", *words[1:], *more],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": path},
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def install(folder: Path, announced: str) -> None:
    """Install a package as pip does: its ``pyproject.toml`` becomes its metadata."""
    points = tomllib.loads(announced)["project"]["entry-points"]
    lines = [
        line
        for group, names in points.items()
        for line in (f"[{group}]", *(f"{name} = {value}" for name, value in names.items()))
    ]
    about = folder / "lab_policies-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: lab-policies\nVersion: 1.0\n", encoding="utf-8"
    )
    (about / "entry_points.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def test_a_package_with_the_policies_of_the_how_to_is_found_by_its_command(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (code,), (announced,) = EXAMPLE.findall(text), ANNOUNCED.findall(text)
    (tmp_path / "lab_policies.py").write_text(code, encoding="utf-8")
    install(tmp_path, announced)
    (tmp_path / "own.csv").write_text(OWN, encoding="utf-8")
    policies = json.loads(typed(command("impatient"), tmp_path, "--json", "-"))["policies"]
    assert list(policies) == ["fifo", "widest", "impatient"]
    jct = {name: found["jct"]["mean"] * 3 for name, found in policies.items()}
    assert jct == pytest.approx(
        {"fifo": 100 + 104 + 113, "widest": 100 + 108 + 114, "impatient": 110 + 10 + 114}
    )
    assert [found["preemptions"] for found in policies.values()] == [0, 0, 1]


def test_the_gangs_of_the_how_to_are_replayed_as_it_shows(tmp_path: Path) -> None:
    """The second gang does not wait under ``carrel``, because it starts with two members."""
    (table,) = GANGS.findall(PAGE.read_text(encoding="utf-8"))
    (tmp_path / "gangs.csv").write_text(dedent(table), encoding="utf-8")
    found = json.loads(typed(command("gangs.csv"), tmp_path, "--json", "-"))
    assert found["nodes"] == "1x4:A100@sw1,1x4:A100@sw2"
    waits = {name: each["wait"]["mean"] * 2 for name, each in found["policies"].items()}
    assert waits == {"fifo": 7200 - 600, "carrel": 0}


def test_the_policy_of_the_how_to_runs() -> None:
    (code,) = EXAMPLE.findall(PAGE.read_text(encoding="utf-8"))
    names: dict[str, object] = {}
    exec(code, names)  # noqa: S102  # the page's own example
    impatient = names["impatient"]
    assert isinstance(impatient, Policy)
    patient = Policy(name="widest", order=impatient.order)
    jobs = (job("one", 0, 100), job("two", 1, 10, 2), job("late", 2, 5))
    assert spans(played(patient, jobs)) == {
        "one": [(0, 100)],
        "two": [(100, 110)],
        "late": [(110, 115)],
    }
    assert spans(played(impatient, jobs)) == {
        "one": [(0, 1), (11, 110)],
        "two": [(1, 11)],
        "late": [(11, 16)],
    }


def test_the_examples_are_small_pages_of_what_the_commands_say() -> None:
    pages = [PAGE.parent / found for found in PICTURED.findall(PAGE.read_text(encoding="utf-8"))]
    assert [page.stem for page in pages] == ["s1", "helios"]
    week, helios = (page.read_text(encoding="utf-8") for page in pages)
    assert max(page.stat().st_size for page in pages) < MOST_BYTES
    assert "cluster is 6214e9, submitted from 2017-10-01, submitted up to 2017-10-07 23:59" in week
    assert "1,867 jobs on vcvGl=20x8,vcvlY=2x8" in helios


@pytest.mark.parametrize("name", ["s1.html", "helios.html"])
def test_the_examples_are_what_their_commands_write_now_byte_for_byte(
    tmp_path: Path, name: str
) -> None:
    words = command(f"--html {name}")
    trace = words[words.index("--trace") + 1]
    (tmp_path / trace).symlink_to(shared(trace))
    typed(words, tmp_path)
    published = PAGE.parents[1] / "_static" / "simulations" / name
    if (tmp_path / name).read_bytes() != published.read_bytes():
        pytest.fail(f"{published} is out of date: write it again with {shlex.join(words)}")
