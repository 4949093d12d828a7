"""The folder of a course in the containers of its graders, and what they may do there."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

import docker
import pytest

from ..courses.notebook_samples import source
from ..docker_engine import DockerEngine, site_file
from ..e2e.classes import PS1, ask, hand_in, handed, the_demo_is_ready
from ..e2e.support import Installation, installation
from .inside import inside
from .lab import TABLE, containers

pytestmark = [pytest.mark.docker, pytest.mark.slow]

FOLDER = "/home/teacher/courses/cs102"
WORDS = ("ps1", "--course", "cs102")
GIVE = f"""
from nbgrader.api import Gradebook
with Gradebook("sqlite:///{FOLDER}/gradebook.db", "cs102") as book:
    grade = book.find_grade("test-answer", "ps1", "ps1", "student1")
    grade.manual_score, grade.needs_manual_grade = 0.5, False
    book.db.commit()
"""


@pytest.fixture(scope="module")
def site(
    docker_engine: DockerEngine, base_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Installation]:
    state = tmp_path_factory.mktemp("graded") / "state"
    site_file(state, docker_engine, TABLE)
    (state / "jupyterhub_config.py").write_text("c.LeaseMixin.launch_timeout = 140.0\n")
    with installation(state, "--simulated-devices", "1", "--engine", "docker") as made:
        yield made


@pytest.fixture(scope="module")
def graded(site: Installation) -> Installation:
    """student1's answer to ps1, which is right."""
    the_demo_is_ready(site)
    made = {"name": "cs102", "teachers": ["teacher"], "students": "student\nstudent1"}
    ask(site, "POST", "/courses", "admin", **made, image="base")
    ask(site, "POST", f"{PS1}/release", "teacher", files=handed(source()))
    hand_in(site, "student1", "def answer():\n    return 42")
    site.cli("course", "grade", *WORDS, "--watch", user="teacher")
    assert score(site) == "2.0"
    return site


def score(site: Installation) -> str:
    table = site.cli("course", "grades", *WORDS, "--csv", user="teacher").stdout
    (row,) = csv.DictReader(io.StringIO(table))
    return row["score"]


def session(site: Installation, client: docker.APIClient, user: str) -> dict[str, Any]:
    """A running container of a member of the course's group."""
    wanted = {"devices": 0, "hours": 1.0, "group": "cs102"}
    request = ask(site, "POST", "/sessions/-", user, **wanted)
    site.wait_for(request["id"], "running", user=user, within=240)
    (found,) = containers(client, request)
    return client.inspect_container(found["Id"])


@pytest.fixture(scope="module")
def teacher(graded: Installation, docker_engine: DockerEngine) -> dict[str, Any]:
    return session(graded, docker_engine.client(), "teacher")


def environment(container: dict[str, Any]) -> dict[str, str]:
    return dict(each.split("=", 1) for each in container["Config"]["Env"])


def said(client: docker.APIClient, container: dict[str, Any], *command: str) -> str:
    return inside(client, container["Id"], *command)


def test_points_that_a_teacher_gives_in_a_container_count(
    graded: Installation, teacher: dict[str, Any], client: docker.APIClient
) -> None:
    folder = graded.state / "courses" / "cs102"
    assert environment(teacher)["CARREL_COURSE_FOLDER"] == FOLDER
    seen = said(client, teacher, "ls", "-L", FOLDER).split()
    assert {"autograded", "data", "gradebook.db", "source", "submitted"} <= set(seen)
    assert said(client, teacher, "python", "-c", GIVE).strip() == ""
    assert score(graded) == "0.5"

    # A grading beside it keeps them, and the teacher's files.
    assert said(client, teacher, "touch", f"{FOLDER}/source/mine") == ""
    graded.cli("course", "grade", *WORDS, "--watch", user="teacher")
    assert score(graded) == "0.5"
    graded.cli("course", "feedback", *WORDS, "--release", user="teacher")
    target = graded.state / "pages"
    graded.cli("course", "feedback", *WORDS, "--to", str(target), user="student1")
    assert "Score: 0.5 / 2.0" in (target / "ps1.html").read_text()

    # What a class reads stays where it is.
    assert "busy" in said(client, teacher, "mv", f"{FOLDER}/data", f"{FOLDER}/other")
    assert said(client, teacher, "sh", "-c", f"echo for all > {FOLDER}/data/note") == ""
    student = session(graded, client, "student1")
    assert "CARREL_COURSE_FOLDER" not in environment(student)
    assert {each["Destination"] for each in student["Mounts"]} == {
        *("/home/student1", "/course/cs102"),
    }
    assert said(client, student, "cat", "/course/cs102/note") == "for all\n"
    assert (folder / "data" / "note").exists()


def test_links_that_a_teacher_plants_there_are_not_followed(
    graded: Installation, teacher: dict[str, Any], client: docker.APIClient
) -> None:
    folder, precious = graded.state / "courses" / "cs102", graded.state / "precious"
    precious.write_text("mine")
    before = score(graded)
    handed_in = "submitted/student1/ps1/ps1.ipynb"
    assert said(client, teacher, "ln", "-sf", str(precious), f"{FOLDER}/{handed_in}") == ""
    graded.cli("course", "grade", *WORDS, "--watch", user="teacher")
    assert not (folder / handed_in).is_symlink()

    assert said(client, teacher, "ln", "-s", str(precious), f"{FOLDER}/gradebook.db-journal") == ""
    stuck = graded.cli("course", "grade", *WORDS, "--watch", user="teacher", check=False)
    assert "gradebook.db-journal is a link" in stuck.stderr + stuck.stdout
    assert precious.read_text() == "mine"
    assert said(client, teacher, "rm", "-f", f"{FOLDER}/gradebook.db-journal") == ""
    other = graded.state / "carrel.db"
    assert said(client, teacher, "mv", f"{FOLDER}/gradebook.db", f"{FOLDER}/kept.db") == ""
    assert said(client, teacher, "ln", "-s", str(other), f"{FOLDER}/gradebook.db") == ""
    refused = graded.cli("course", "grades", *WORDS, user="teacher", check=False)
    assert "cannot be read: gradebook.db is a link" in refused.stderr + refused.stdout
    failed = graded.cli("course", "grade", *WORDS, "--watch", user="teacher", check=False)
    assert failed.returncode != 0, failed.stdout
    assert said(client, teacher, "mv", f"{FOLDER}/kept.db", f"{FOLDER}/gradebook.db") == ""
    graded.cli("course", "grade", *WORDS, "--watch", user="teacher")
    assert score(graded) == before
