"""Run every command of the README and the tutorial in a real installation."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import expect

from ..ports import free_port
from .browser import SESSION_MS, Person, chromium
from .documents import REQUEST, Block, Step, blocks, missing, pattern, steps
from .support import CARREL, ROOT, Installation, brought_up

TUTORIAL = ROOT / "docs" / "tutorial" / "first-session-and-job.md"
README = ROOT / "README.md"
WRITTEN_URL = "http://127.0.0.1:8000"
SIGN_IN = re.compile(r"^ {2}(?P<name>\w+) +(?P<password>\S+) +\(\w+\)$")
NOT_RUN_AT_MOST = 2


@dataclass
class Printed(Installation):
    """``make up`` as users see it: its text output instead of JSON."""

    said: str = ""

    def up(self) -> None:
        flags = f"--port {self.port} --state {self.state} --simulated-devices 2"
        self.process = subprocess.Popen(
            ["make", "up", f"ARGS={flags}"],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.said += line
            if found := SIGN_IN.match(line.rstrip("\n")):
                self.passwords[found["name"]] = found["password"]
            if line.startswith("Ctrl-C stops Carrel"):
                return
        raise AssertionError(f"make up ended and said:\n{self.said}")


@dataclass
class Reader:
    """Runs the steps with the address, folders and ids of this installation."""

    site: Printed
    clone: Path
    request: str = ""
    problems: list[str] = field(default_factory=list)

    def take(self, block: Block) -> None:
        if block.language == "python":
            self._expect(block, Step(command=block.text, prints=()), self._cell(block))
            return
        for step in steps(block):
            self._expect(block, step, self._type(block, step))

    def _type(self, block: Block, step: Step) -> tuple[int, str]:
        if step.command == "make up":
            return 0, self.site.said
        command = step.command.replace(WRITTEN_URL, self.site.url)
        command = re.sub(rf"\bJOB\b|{REQUEST.pattern}", self.request or "JOB", command)
        name = re.search(r"--user (\w+)", command)
        password = self.site.passwords[name[1]] if name else ""
        return self._run(["sh", "-c", command], block, typed=password)

    def _cell(self, block: Block) -> tuple[int, str]:
        return self._run([sys.executable, "-c", block.text], block)

    def _run(self, words: list[str], block: Block, typed: str = "") -> tuple[int, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("CARREL_", "JUPYTERHUB_"))
        } | {"HOME": str(self.clone.parent), "CARREL_STATE": str(self.site.state)}
        folder = self.clone
        if block.session_of:
            # As in the session's terminal: signed in, in the home, with Carrel's programs.
            folder = self.site.state / "homes" / block.session_of
            environment |= {
                "HOME": str(folder),
                "CARREL_URL": self.site.service,
                "JUPYTERHUB_API_TOKEN": self.site.token(block.session_of),
                "PATH": f"{CARREL.parent}{os.pathsep}{os.environ['PATH']}",
            }
        done = subprocess.run(
            words,
            cwd=folder,
            env=environment,
            input=f"{typed}\n",
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=240,
            check=False,
        )
        return done.returncode, done.stdout

    def _expect(self, block: Block, step: Step, answer: tuple[int, str]) -> None:
        status, said = answer
        if found := REQUEST.search(said):
            self.request = found[0]
        prints = tuple(line for line in step.prints if line != "Password:")
        line = missing(prints, said)
        if status != 0:
            self.problems.append(f"{block.place}: {step.command}: exit status {status}:\n{said}")
        elif line is not None:
            self.problems.append(f"{block.place}: {step.command}: no {line!r} in:\n{said}")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Printed]:
    folder = tmp_path_factory.mktemp("reader")
    with brought_up(Printed(state=folder / "state", port=free_port())) as made:
        yield made


@pytest.fixture
def reader(site: Printed, tmp_path: Path) -> Reader:
    """In a clone with the files that the pages name, so that the checkout stays clean."""
    clone = tmp_path / "clone"
    clone.mkdir()
    (clone / ".venv").symlink_to(sys.prefix)
    (clone / "courses").symlink_to(ROOT / "courses")
    return Reader(site=site, clone=clone)


@pytest.mark.browser
@pytest.mark.slow
def test_pictures_of_the_tutorial(site: Printed) -> None:
    """Saved to $CARREL_ARTEFACTS; the pages show the copies in docs/images."""
    with chromium() as browser:
        one = Person.sits_down(browser, site, "student1")
        two = Person.sits_down(browser, site, "student2")
        one.sign_in()
        expect(one.page.locator("#quote")).to_contain_text("Starts immediately.")
        one.picture("tutorial-desk")
        one.start(1)
        one.page.wait_for_url("**/user/student1/lab**", timeout=SESSION_MS)
        one.page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)

        submitted = site.cli(
            *("submit", str(ROOT / "courses/sample/digits.ipynb"), "--devices", "1", "--json"),
            *("-p", "hidden", "64", "-p", "seed", "7"),
            user="student1",
        )
        job = REQUEST.findall(submitted.stdout)[0]
        site.wait_for(job, "succeeded", user="student1")
        one.page.goto(f"{site.service}/requests/{job}")
        expect(one.page.locator("body")).to_contain_text("accuracy")
        one.picture("tutorial-job")

        two.sign_in()
        two.start(2)
        two.page.wait_for_url("**/services/carrel/wait/-")
        expect(two.page.locator("#wait-status")).to_contain_text("Expected")
        two.picture("tutorial-waiting")
        assert one.complaints + two.complaints == []
    for name in ("student2", "student1"):
        for request in site.cli_json("ps", user=name)["requests"]:
            site.cli("cancel", request["id"], user=name)
            site.wait_for(request["id"], "cancelled", "succeeded", user=name)


@pytest.mark.parametrize("page", [README, TUTORIAL], ids=lambda page: page.stem)
def test_every_command_of_the_page_prints_the_documented_output(page: Path, reader: Reader) -> None:
    for block in blocks(page):
        if not block.not_run:
            reader.take(block)
    assert not reader.problems, "\n\n".join(reader.problems)


def test_blocks_that_are_not_run_are_few_and_have_a_reason() -> None:
    left_out = [block for page in (README, TUTORIAL) for block in blocks(page) if block.not_run]
    assert len(left_out) <= NOT_RUN_AT_MOST, [block.place for block in left_out]


@pytest.mark.parametrize(
    ("line", "said", "otherwise"),
    [
        (
            "Submitted j-aggxet96: queued.",
            "Submitted j-7k2m4qpz: queued.",
            "Submitted j-7k2m4qpz: refused.",
        ),
        ("cs101  student1        4     0", "cs101 student1 12 3", "cs101 student1 12"),
        (
            "Together less than 0.01 device-hours.",
            "Together 0.02 device-hours.",
            "Together many device-hours.",
        ),
        ("State: /home/you/carrel", "State: /tmp/x/state", "State: none"),
        (
            "  admin  bede-genu-vino-vova  (admin)",
            "admin   gihu-mime-tave-veje  (admin)",
            "admin  hidden  (admin)",
        ),
        ("epoch 40: …", "epoch 40: loss 0.2", "epoch forty: loss 0.2"),
    ],
)
def test_values_that_differ_between_readers_are_ignored(
    line: str, said: str, otherwise: str
) -> None:
    assert pattern(line).search(said)
    assert not pattern(line).search(otherwise)
