"""Containers: two students and one device, an image, a full home, and grading."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from carrel.hub.config.state_folder import StateFolder
from carrel.spawners.docker.sandbox import LABEL

from ..courses.notebook_samples import source
from ..docker.lab import HOME_MIB, LIMITED, fill
from ..docker_engine import DockerEngine, site_file
from ..requirements import need
from .browser import SESSION_MS, Person, chromium
from .classes import PS1, ask, hand_in, handed
from .papermill_runs import read, shown, start, write
from .support import Installation, installation
from .two_students import Work, two_students_and_one_device
from .widget_pages import write_notebook

# The base image contains Python and Jupyter only.
CELLS = (
    "import random\nrandom.seed(7)\n"
    "inside = sum(random.random() ** 2 + random.random() ** 2 < 1 for _ in range(points))\n"
    "print(f'pi is about {4 * inside / points:.3f}')",
)

pytestmark = [pytest.mark.browser, pytest.mark.docker]


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("containers") / "state"
    site_file(state, docker_engine, f'home_size = "{HOME_MIB}MiB"\n' if LIMITED else "")
    # The time-outs of two_students: this machine may be busy.
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


def test_two_students_and_one_device_in_containers(site: Installation) -> None:
    home = site.state / "homes" / "student1"
    write_notebook(home / "pi.ipynb", *CELLS, parameters="points = 10")
    work = Work(submit="pi.ipynb -p points 4000", says=r"pi is about (\d\.\d+)", between=(3.0, 3.3))
    two_students_and_one_device(site, isolated=True, work=work, chapter="containers-")


def test_a_full_home_is_reported_on_the_desk_and_in_the_recovery_session(
    site: Installation,
) -> None:
    need("loop", LIMITED, "homes with a size need root and loop devices")
    name = "student3"
    fill(site.state / "homes" / name)
    with chromium() as browser:
        person = Person.sits_down(browser, site, name)
        person.sign_in()
        page = person.page
        expect(page.locator("#home-full")).to_contain_text("Your home is full.")
        page.locator("#home-full").hover()  # scrolls there, even while the page updates
        bar = page.get_by_role("meter", name="Space in my home")
        assert bar.evaluate("bar => bar.optimum < bar.high && bar.high < bar.value"), "it is red"
        person.picture("containers-7-desk-with-a-full-home")

        # Images are selected by their description.
        offered = page.locator("#image option").all_inner_texts()
        base = next(text for text in offered if text.startswith("base"))
        page.select_option("#image", label=base)
        person.picture("containers-8-image-chosen")
        person.start(0)
        page.wait_for_url(f"**/user/{name}/lab**", timeout=SESSION_MS)
        page.wait_for_selector(".jp-Launcher", timeout=SESSION_MS)
        told = page.locator(".Toastify__toast", has_text="Your home is full")
        expect(told).to_be_visible()
        person.picture("containers-9-recovery-session")
        assert person.complaints == []
    (session,) = site.api("GET", "/requests?kind=session", user=name).json()["requests"]
    assert session["image"].startswith("base@sha256:")


def test_a_script_and_the_stock_papermill_command_run_in_containers(
    site: Installation, tmp_path: Path
) -> None:
    script = tmp_path / "train.py"
    script.write_text('# %% tags=["parameters"]\nsteps = 1\n# %%\nprint("steps", steps)\n')
    sent = site.cli("submit", str(script), "-p", "steps", "3", "--json", user="student1")
    job = json.loads(sent.stdout)["id"]
    site.cli("wait", job, user="student1")
    assert "steps 3" in site.cli("logs", job, user="student1").stdout

    write(tmp_path / "in.ipynb", "lr = 0.1", "import os\nprint(lr, os.getuid())")
    words = ("in.ipynb", "out.ipynb", "--engine", "carrel", "-p", "lr", "0.2")
    ran = start(site, tmp_path, *words)
    _, errors = ran.communicate(timeout=120)
    assert ran.returncode == 0, errors
    assert shown(read(tmp_path / "out.ipynb"))[-1] == "0.2 1000\n"


ANSWERS = {
    "student1": "def answer():\n    return 42",
    "student2": "import os\nos._exit(0)",
    # The service has numpy, and the image of the course has not.
    "student3": "import numpy\ndef answer():\n    return 42",
}


@pytest.mark.slow
def test_a_class_is_graded_in_containers_of_its_image(
    site: Installation, docker_engine: DockerEngine
) -> None:
    students = "\n".join(["student", *ANSWERS])
    made = {"name": "cs102", "teachers": ["teacher"], "students": students, "image": "base"}
    ask(site, "POST", "/courses", "admin", **made)
    wrong = source().replace(b"return 42", b"return 41")
    refused = site.api("POST", f"{PS1}/release", user="teacher", json={"files": handed(wrong)})
    assert "The solution does not pass 'test-answer'" in refused.text
    released = ask(site, "POST", f"{PS1}/release", "teacher", files=handed(source()))
    assert released["warnings"] == []
    for student, answer in ANSWERS.items():
        hand_in(site, student, answer)

    watched = site.cli("course", "grade", "ps1", "--course", "cs102", "--watch", user="teacher")
    assert "3 of 3" in watched.stdout
    shown = ask(site, "GET", f"{PS1}/grading", "teacher")
    assert shown["run"]["state"] == "succeeded"
    cells = {each["person"]: each["cells"][0] for each in shown["grades"]}
    assert {who: (cell["word"], cell["score"]) for who, cell in cells.items()} == {
        "student1": ("passed", 2.0),
        "student2": ("not run", 0.0),
        "student3": ("failed", 0.0),
    }

    words = ("course", "feedback", "ps1", "--course", "cs102")
    assert site.cli(*words, "--release", user="teacher").stdout.count("has feedback") == 3
    site.cli(*words, "--to", str(site.state / "pages"), user="student2")
    assert "<script" not in (site.state / "pages" / "ps1.html").read_text()
    mine = f"{LABEL}={StateFolder.at(site.state).installation}"
    assert docker_engine.client().containers(all=True, filters={"label": mine}) == []
