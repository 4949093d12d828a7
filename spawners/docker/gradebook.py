"""The gradebooks of courses, written in a container that sees one course's folder and no more.

Made by the one template, without any network, for one grading run. What runs inside is this
installation's own; only nbgrader is the base image's.
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
from .engine.images import images_on, tools
from .engine.stdio import container_body, start

LABEL: Final = "carrel.books"
"""With the installation's name."""
_PLACE: Final = "/carrel/course"
_CODE: Final = "/carrel/code"
_PACKAGE: Final = Path(writer_process.__file__).parents[2]
_PARTS: Final = ("__init__.py", "courses", "hub")
_PROCESSES: Final = 32
_TMP_BYTES: Final = 64 << 20


def create(settings: GradebookSettings) -> GradebookProcess:
    """For the entry point.

    Raises:
        BackendFailed: the folder or the container cannot be made.
        Unavailable: the engine does not answer.
    """
    options = settings.docker
    if options is None:
        raise BackendFailed("A bookkeeper in a container needs the options of a Docker engine.")
    try:
        course_folder.make(settings.folder, settings.course, options.owner)
    except OSError as error:
        raise Unavailable(f"The folder of {settings.course} cannot be made: {error}.") from error
    host = options.hosts[0]
    engine = DockerClient(host)
    image = tools(images_on(engine, options.image), node=host.node)
    name = f"carrel-{settings.installation}-book-{secrets.token_hex(6)}"
    _, line = start(engine, host, name, body(settings, options, image))
    return GradebookProcess(line, settings.course)


def body(settings: GradebookSettings, options: DockerOptions, image: str) -> dict[str, Json]:
    """What the engine is asked to create."""
    code = (
        Mount(source=str(_PACKAGE / part), target=f"{_CODE}/carrel/{part}", read_only=True)
        for part in _PARTS
    )
    task = Task(
        installation=settings.installation,
        lease_id="",
        request_id="",
        epoch=0,
        owner="",
        kind="book",
        image=image,
        command=("python", "-m", writer_process.__name__, _PLACE, settings.course),
        uid=options.uid,
        network="none",
        outside=False,
        bounds=ContainerBounds(
            memory=options.memory, cpus=options.cpus, pids=_PROCESSES, tmp=_TMP_BYTES
        ),
        environment={"PYTHONPATH": _CODE, "HOME": "/tmp"},  # noqa: S108  # its own
        mounts=(*course_mounts(settings.folder, _PLACE), *code),
    )
    return container_body(container(task), LABEL, settings.installation)
