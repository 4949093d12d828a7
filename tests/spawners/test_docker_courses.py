"""Which folders of courses a container sees, and how."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from carrel.courses import course_folders
from carrel.courses.grading.bookkeeping import BookSettings
from carrel.hub.ports.backend import BackendSettings, DockerHost, DockerOptions
from carrel.spawners.docker import books
from carrel.spawners.docker.homes import graded_mounts
from carrel.spawners.docker.template import Mount

OPTIONS = DockerOptions(
    hosts=(DockerHost(node="local", url="unix:///run/docker.sock"),),
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
        course_folders.make(tmp_path / "courses" / course, course)
    return BackendSettings(
        state=tmp_path, service_url="http://x", installation="abc123", docker=OPTIONS
    )


def test_who_grades_a_course_has_its_folder_and_its_data_apart(site: BackendSettings) -> None:
    folder = site.state / "courses" / "cs101"
    assert graded_mounts(site, ["cs101"]) == (
        Mount(source=str(folder), target="/carrel/courses/cs101"),
        Mount(source=str(folder / "data"), target="/carrel/courses/cs101/data"),
    )
    assert graded_mounts(site, []) == ()


@pytest.mark.parametrize("name", ["", "data"])
def test_what_is_a_link_is_not_mounted(site: BackendSettings, name: str) -> None:
    """The engine would follow it, as root of the host."""
    place = site.state / "courses" / "cs101" / name
    place.rename(site.state / "aside")
    place.symlink_to("/etc")
    assert {each.target for each in graded_mounts(site, ["cs101", "cs102"])} == {
        *("/carrel/courses/cs102", "/carrel/courses/cs102/data"),
    }


def test_a_bookkeeper_sees_one_course_and_reaches_nothing(site: BackendSettings) -> None:
    folder = site.state / "courses" / "cs101"
    settings = BookSettings(folder=folder, course="cs101", installation="abc123", docker=OPTIONS)
    body = cast(dict[str, Any], books.body(settings, OPTIONS, "sha256:1"))
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
        *("-m", "carrel.courses.grading.bookkeeper", "/carrel/course", "cs101"),
    ]
