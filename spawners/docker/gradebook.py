"""Write a course's gradebook in a container that sees only the folder of this course.

The container is built from the template, without a network, for one grading run. It runs the code
of this installation; only nbgrader comes from the base image.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Final

from ...courses.files import course_folder
from ...courses.gradebook import writer_process
from ...courses.gradebook.writer import GradebookProcess, GradebookSettings
from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import DockerOptions
from ...hub.records.json_value import Json
from .containers.course_mounts import course_mounts
from .containers.template import ContainerBounds, Mount, Task, container
from .engine.client import DockerClient
from .engine.images import images_on, tools_image
from .engine.stdio import container_body, start

LABEL: Final = "carrel.books"
"""Label of the container, kept for compatibility; its value is the installation."""
_COURSE: Final = "/carrel/course"
_CODE: Final = "/carrel/code"
_PACKAGE: Final = Path(writer_process.__file__).parents[2]
_PACKAGES: Final = ("__init__.py", "courses", "hub")
_PROCESSES: Final = 32
_TMP_BYTES: Final = 64 << 20


def create(settings: GradebookSettings) -> GradebookProcess:
    """Entry point (group ``carrel.gradebooks``).

    Raises:
        BackendFailed: the container cannot be created.
        Unavailable: the engine does not answer, or the folder cannot be created.
    """
    options = settings.docker
    if options is None:
        raise BackendFailed("Writing gradebooks in a container needs a Docker engine.")
    try:
        course_folder.make(settings.folder, settings.course, options.owner)
    except OSError as error:
        raise Unavailable(f"The folder of {settings.course} cannot be created: {error}.") from error
    host = options.hosts[0]
    engine = DockerClient(host)
    image = tools_image(images_on(engine, options.image), node=host.node)
    name = f"carrel-{settings.installation}-gradebook-{secrets.token_hex(6)}"
    _, stdio = start(engine, host, name, body(settings, options, image))
    return GradebookProcess(stdio, settings.course)


def body(settings: GradebookSettings, options: DockerOptions, image: str) -> dict[str, Json]:
    """Return the body of the engine's create call."""
    code = (
        Mount(source=str(_PACKAGE / part), target=f"{_CODE}/carrel/{part}", read_only=True)
        for part in _PACKAGES
    )
    task = Task(
        installation=settings.installation,
        lease_id="",
        request_id="",
        epoch=0,
        owner="",
        kind="book",
        image=image,
        command=("python", "-P", "-m", writer_process.__name__, _COURSE, settings.course),
        uid=options.uid,
        network="none",
        outside=False,
        bounds=ContainerBounds(
            memory=options.memory, cpus=options.cpus, pids=_PROCESSES, tmp=_TMP_BYTES
        ),
        environment={"PYTHONPATH": _CODE, "HOME": "/tmp"},  # noqa: S108  # its own
        mounts=(*course_mounts(settings.folder, _COURSE), *code),
    )
    return container_body(container(task), LABEL, settings.installation)
