"""Read job files of OpenPAI's first version: JSON with ``jobName``, ``image`` and task roles.

A command is run by bash after the exports of ``jobEnvs``.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import Final

from . import openpai_variables
from .completion import CompletionPolicy, required_roles
from .description import (
    CONTAINER,
    CPU,
    PLATFORM,
    PORTS,
    DescribedJob,
    DescribedRole,
    JobFileFormat,
    NotKept,
    retries_of,
)
from .field_reader import FieldReader
from .openpai import checked_name
from .openpai_task_roles import MEBIBYTE, MOST_PORTS, checked_members, unset_variables
from .openpai_variables import TaskRoleNames
from .role_names import role_names
from .yaml_source import MalformedJobFile, YamlNode, YamlScalar

_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_FOLDERS: Final = ("authFile", "dataDir", "outputDir", "codeDir")


def read(file: str, node: YamlNode) -> DescribedJob:
    """Return the job of a file of version 1.

    Raises:
        MalformedJobFile: a field is missing or has a wrong value; with its line.
    """
    job = FieldReader.of(file, node)
    name = checked_name(job, "jobName")
    image, line = job.text("image"), job.line("image")
    dropped: list[NotKept] = []
    for key in _FOLDERS:
        dropped += job.drop(key, "A job works in its own folder or in one of your home.")
    dropped += job.drop("virtualCluster", "Choose a group with --group.")
    dropped += job.drop("gpuType", "Choose a device model with --model.")
    retries, lost = retries_of(
        job.whole("retryCount", default=0), job.line("retryCount"), "retryCount"
    )
    dropped += lost
    exports = _exports(job)
    readers = {each.text("name"): each for each in job.mappings("taskRoles")}
    _check_duplicates(job, len(readers))
    lines = {own: each.line("name") for own, each in readers.items()}
    names = role_names(file, lines, job.line("taskRoles"))
    policies: list[CompletionPolicy] = []
    roles: list[DescribedRole] = []
    for own, carrel in names.items():
        each = readers[own]
        count = each.whole("taskNumber", default=1, least=1)
        policies.append(_policy(each, carrel, count))
        ports, lost = _ports(each)
        dropped += lost
        command = each.text("command").strip()
        if not command or "\0" in command:
            raise each.error("command", f"The task role {own} has no valid command.", "A text.")
        dropped += unset_variables(each.line("command"), f"{each.path}command", command)
        dropped += each.drop("cpuNumber", CPU)
        dropped += each.drop("shmMB", CONTAINER)
        roles.append(
            DescribedRole(
                name=carrel,
                own_name=own,
                count=count,
                devices=each.whole("gpuNumber", default=0),
                memory_bytes=each.whole("memoryMB", default=0, most=2**40) * MEBIBYTE,
                script=f"{exports}{command}",
                image=image,
                line=line,
                ports=ports,
            )
        )
        dropped += each.rest()
    checked_members(file, job.line("taskRoles"), tuple(roles))
    must_succeed, lost = required_roles(policies)
    dropped += [*lost, *job.drop("extras", PLATFORM), *job.rest()]
    of_roles = (TaskRoleNames(name=r.own_name, count=r.count, ports=r.ports) for r in roles)
    return DescribedJob(
        format=JobFileFormat.OPENPAI,
        name=name,
        roles=tuple(roles),
        must_succeed=must_succeed,
        retries=retries,
        prologue=openpai_variables.prologue(name, of_roles),
        not_kept=tuple(sorted(dropped, key=lambda each: each.line)),
    )


def _check_duplicates(job: FieldReader, names: int) -> None:
    if names < len(job.items("taskRoles")):
        raise job.error("taskRoles", "Two task roles have the same name.", "Names that differ.")


def _exports(job: FieldReader) -> str:
    """Return the lines that export the variables of the job."""
    reader = job.mapping("jobEnvs")
    text = ""
    for name, value in {} if reader is None else reader.node.values.items():
        if not _VARIABLE.fullmatch(name) or not isinstance(value, YamlScalar):
            raise MalformedJobFile(
                job.file, value.line, f"The variable {name[:80]!r} is not valid.",
                accepted="A name of letters, digits and underscores, with a text or a number.",
            )  # fmt: skip
        text += f"export {name}={shlex.quote(value.text)}\n"
    return text


def _policy(role: FieldReader, name: str, count: int) -> CompletionPolicy:
    values = [
        role.whole(key, least=-1) if role.has(key) else None
        for key in ("minSucceededTaskCount", "minFailedTaskCount")
    ]
    return CompletionPolicy(
        role=name,
        count=count,
        succeeded=values[0] or None,
        failed=values[1] or None,
        line=role.line("minSucceededTaskCount"),
        field=f"{role.path}minSucceededTaskCount",
    )


def _ports(role: FieldReader) -> tuple[tuple[tuple[str, int], ...], list[NotKept]]:
    """Return the ports of a task role, and what of them is not kept."""
    ports: dict[str, int] = {}
    dropped: list[NotKept] = []
    for each in role.mappings("portList"):
        label = each.text("label")
        if not _LABEL.fullmatch(label) or label in ports:
            raise each.error(
                "label", f"The label {label[:80]!r} of a port is not valid.",
                "Letters, digits and underscores, and each label once.",
            )  # fmt: skip
        ports[label] = each.whole("portNumber", default=1, least=1, most=MOST_PORTS)
        dropped += _first_port(each)
    if ports:
        dropped.append(role.not_kept("portList", PORTS))
    return tuple(ports.items()), dropped


def _first_port(port: FieldReader) -> Iterator[NotKept]:
    if port.whole("beginAt", default=0):
        yield port.not_kept("beginAt", "The number of a port cannot be chosen.")
