"""Write a job as a file of OpenPAI's protocol, version 2."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import yaml

from ...errors import InvalidInput
from ...schemas import RequestOut, RoleOut
from . import openpai_variables
from .description import NotKept
from .job_fields import NAME_LABEL, SHELL
from .openpai_task_roles import MEBIBYTE
from .openpai_templates import escaped
from .openpai_variables import TaskRoleNames
from .role_names import own_name

_SINGLE: Final = "taskrole"
_PRIORITIES: Final = {"opportunistic": "oppo", "urgent": "crit"}
_NO_IMAGE: Final = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportedJobFile:
    """The text of a job file, and what of the job is not in it."""

    text: str
    not_kept: tuple[NotKept, ...]


class _Block(str):
    """A text that is written as a block, with its line breaks."""

    __slots__ = ()


class _Dumper(yaml.SafeDumper):  # type: ignore[misc]  # PyYAML has no types
    pass


_Dumper.add_representer(
    _Block, lambda dumper, text: dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|")
)


def export(job: RequestOut) -> ExportedJobFile:
    """Return a job as a file of OpenPAI.

    Raises:
        InvalidInput: it is not a command: a notebook, a sweep or a session.
    """
    if job.kind != "job" or not job.command:
        raise InvalidInput(
            f"{job.id} is not a command, and job files of OpenPAI have commands.",
            accepted="A job of `carrel run` or `carrel submit --format`.",
        )
    roles = job.roles or [
        RoleOut(name="", command=job.command, devices=job.devices, image=job.image)
    ]
    scripts = [_script(role.command) for role in roles]
    name, _, known = openpai_variables.split(scripts[0])
    if len(known) != len(roles):
        known = tuple(TaskRoleNames(name=_role_name(r), count=r.maximum, ports=()) for r in roles)
    texts = [escaped(openpai_variables.split(script)[1]) for script in scripts]
    images = {image: f"image_{n}" for n, image in enumerate(dict.fromkeys(map(_image, roles)))}
    body: dict[str, Any] = {
        "protocolVersion": 2,
        "name": name or _name(job),
        "type": "job",
        "jobRetryCount": job.retries or 0,
        "prerequisites": [
            {"type": "dockerimage", "uri": uri, "name": own} for uri, own in images.items()
        ],
        "taskRoles": {
            own.name: _task_role(job, role, own, text, images[_image(role)])
            for own, role, (text, _) in zip(known, roles, texts, strict=True)
        },
    }
    if any(needed for _, needed in texts):
        body["parameters"] = {"open": "<%"}
    if job.priority in _PRIORITIES:
        body["extras"] = {"hivedScheduler": {"jobPriorityClass": _PRIORITIES[job.priority]}}
    text = yaml.dump(body, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=4096)
    return ExportedJobFile(text=text, not_kept=tuple(_not_kept(job, roles)))


def _task_role(
    job: RequestOut, role: RoleOut, own: TaskRoleNames, script: str, image: str
) -> dict[str, Any]:
    resources: dict[str, Any] = {"gpu": role.devices, "cpu": 1}
    resources["memoryMB"] = -(-job.memory_bytes // MEBIBYTE)
    if own.ports:
        resources["ports"] = dict(own.ports)
    return {
        "instances": role.maximum,
        "completion": _completion(job, role),
        "dockerImage": image,
        "resourcePerInstance": resources,
        "commands": [_Block(script) if _fits_a_block(script) else script],
    }


def _completion(job: RequestOut, role: RoleOut) -> dict[str, int]:
    """Return the policy that reads back as the same roles that must succeed."""
    if job.must_succeed and role.name not in job.must_succeed:
        return {"minFailedInstances": -1, "minSucceededInstances": -1}
    alone = list(job.must_succeed) == [role.name]
    return {"minFailedInstances": 1, "minSucceededInstances": role.maximum if alone else -1}


def _script(command: Sequence[str]) -> str:
    if len(command) == len(SHELL) + 1 and tuple(command[: len(SHELL)]) == SHELL:
        return command[-1]
    return shlex.join(command)


def _fits_a_block(script: str) -> bool:
    """Return whether a block keeps every character: no blanks at the ends, printable lines."""
    return (
        "\n" in script
        and script == script.strip()
        and all(line.isprintable() and line == line.rstrip() for line in script.split("\n"))
    )


def _image(role: RoleOut) -> str:
    return role.image or _NO_IMAGE


def _role_name(role: RoleOut) -> str:
    return own_name(role.name) if role.name else _SINGLE


def _name(job: RequestOut) -> str:
    return re.sub(r"[^A-Za-z0-9._~-]", "_", job.labels.get(NAME_LABEL, ""))[:128] or job.id


def _not_kept(job: RequestOut, roles: Sequence[RoleOut]) -> list[NotKept]:
    found = {
        "seconds": "The time limit: OpenPAI has none.",
        "group": "Choose a virtual cluster.",
    }
    if job.model:
        found["model"] = "The device model."
    if job.deadline is not None:
        found["deadline"] = "The deadline."
    if job.after:
        found["after"] = "Jobs that it waits for."
    if job.workdir:
        found["workdir"] = "The working folder."
    if not job.internet:
        found["internet"] = "That it has no access to the internet."
    if job.arrangement not in ("", "pack"):
        found["arrangement"] = "The placement of its members."
    if any(role.minimum != role.maximum for role in roles):
        found["minimum"] = "It asks for the maximum number of members."
    if job.retries == 0:
        found["retries"] = "That it never runs twice."
    if set(job.labels) - {NAME_LABEL}:
        found["labels"] = "Labels other than its name."
    if any(not role.image for role in roles):
        found["image"] = f"It has no image: replace '{_NO_IMAGE}'."
    return [NotKept(line=0, field=name, reason=reason) for name, reason in found.items()]
