"""Course folders in containers."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from carrel.courses.files import course_folder
from carrel.courses.gradebook.writer import GradebookSettings
from carrel.hub.client.api.internal import InternalClient
from carrel.hub.errors import Unavailable
from carrel.hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from carrel.spawners.docker import gradebook
from carrel.spawners.docker.containers.course_mounts import graded_mounts, link_courses
from carrel.spawners.docker.containers.template import Mount

HERE = DockerHost(node="local", url="unix:///run/docker.sock")
OPTIONS = DockerOptions(
    hosts=(HERE,),
    subnets="10.0.0.0/16",
    internal_ip="10.0.0.1",
    hub_port=1,
    service_port=2,
    image="base",
    uid=1000,
    memory=1 << 30,
    cpus=2.0,
    pids=128,
    tmp=1 << 26,
)


@pytest.fixture
def site(tmp_path: Path) -> BackendSettings:
    for course in ("cs101", "cs102"):
        course_folder.make(tmp_path / "courses" / course, course)
    return BackendSettings(
        state=tmp_path, service_url="http://x", installation="abc123", docker=OPTIONS
    )


def test_a_grader_has_the_folder_of_the_course_and_its_data(site: BackendSettings) -> None:
    folder = site.state / "courses" / "cs101"
    assert graded_mounts(site, ["cs101"]) == (
        Mount(source=str(folder), target="/carrel/courses/cs101"),
        Mount(source=str(folder / "data"), target="/carrel/courses/cs101/data"),
    )
    assert graded_mounts(site, []) == ()


class Service(InternalClient):
    """A service that returns these courses of a grader."""

    def __init__(self, *graded: str) -> None:
        self._graded = graded

    async def graded(self, person: str) -> tuple[str, ...]:
        return self._graded


class Away(InternalClient):
    def __init__(self) -> None:
        pass

    async def graded(self, person: str) -> tuple[str, ...]:
        raise Unavailable("The Carrel service does not answer at the moment.")


def start(site: BackendSettings, link: InternalClient, host: DockerHost = HERE) -> tuple[str, ...]:
    """Start a session; return its messages, and the courses linked in the home."""
    told: list[str] = []
    found = asyncio.run(link_courses(site, link, "ada", host, told.append))
    folder = site.state / "homes" / "ada" / "courses"
    assert {each.name for each in folder.iterdir() if each.is_symlink()} == set(found or ())
    return tuple(told)


def test_the_courses_of_a_grader_are_read_at_each_start(site: BackendSettings) -> None:
    assert start(site, Service("cs101", "cs102")) == ()
    link = site.state / "homes" / "ada" / "courses" / "cs101"
    assert str(link.readlink()) == "/carrel/courses/cs101"
    assert start(site, Service("cs102")) == ()
    assert not link.is_symlink()


def test_on_another_machine_there_is_a_message_and_no_folder(site: BackendSettings) -> None:
    start(site, Service("cs101"))
    far = DockerHost(node="gpu1", url="ssh://gpu1", address="10.1.2.4")
    assert start(site, Service("cs101"), far) == (
        "This session runs on gpu1, but the course folders are on local: "
        "to use formgrader, start a session without a device.",
    )
    assert start(site, Service(), far) == ()


def test_a_home_with_another_courses_folder_is_reported(site: BackendSettings) -> None:
    home = site.state / "homes" / "ada"
    home.mkdir(parents=True)
    (home / "courses").mkdir()
    (home / "courses").rename(home / "mine")
    (home / "courses").symlink_to(home / "mine")
    (told,) = start(site, Service("cs101"))
    assert "~/courses is not writable" in told


def test_a_session_starts_while_the_service_does_not_answer(site: BackendSettings) -> None:
    assert asyncio.run(link_courses(site, Away(), "ada", HERE, pytest.fail)) is None


@pytest.mark.parametrize("name", ["", "data"])
def test_a_symbolic_link_is_not_mounted(site: BackendSettings, name: str) -> None:
    """The engine would follow it, as root of the host."""
    place = site.state / "courses" / "cs101" / name
    place.rename(site.state / "aside")
    place.symlink_to("/etc")
    assert {each.target for each in graded_mounts(site, ["cs101", "cs102"])} == {
        *("/carrel/courses/cs102", "/carrel/courses/cs102/data"),
    }


def test_a_gradebook_writer_sees_one_course_and_has_no_network(site: BackendSettings) -> None:
    folder = site.state / "courses" / "cs101"
    settings = GradebookSettings(
        folder=folder, course="cs101", installation="abc123", docker=OPTIONS
    )
    body = cast(dict[str, Any], gradebook.body(settings, OPTIONS, "sha256:1"))
    host = body["HostConfig"]
    assert [
        (each["Source"], each["Target"]) for each in host["Mounts"] if not each["ReadOnly"]
    ] == [
        (str(folder), "/carrel/course"),
        (str(folder / "data"), "/carrel/course/data"),
    ]
    assert [each["Target"] for each in host["Mounts"] if each["ReadOnly"]] == [
        *("/carrel/code/carrel/__init__.py", "/carrel/code/carrel/courses"),
        "/carrel/code/carrel/hub",
    ]
    assert (host["NetworkMode"], host["CapDrop"], host["ReadonlyRootfs"]) == ("none", ["ALL"], True)
    assert (host["AutoRemove"], body["OpenStdin"], body["User"]) == (True, True, "1000:1000")
    assert body["Labels"] == {"carrel.books": "abc123"}
    assert body["Cmd"][1:] == [
        *("-P", "-m", "carrel.courses.gradebook.writer_process", "/carrel/course", "cs101"),
    ]
