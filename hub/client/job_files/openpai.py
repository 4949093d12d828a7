"""Read job files of OpenPAI: its protocol, version 2.

The fields are those of microsoft/openpai-protocol, schemas/v2/schema.yaml. Their meaning is that of
OpenPAI's rest-server (microsoft/pai, src/rest-server): the commands of a task role are the lines of
one script of bash, with those of the default deployment around them; memory is in MiB.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from . import openpai_variables
from .description import (
    DOCUMENTATION,
    PLATFORM,
    DescribedJob,
    DescribedRole,
    JobFileFormat,
    NotKept,
    retries_of,
)
from .field_reader import FieldReader
from .openpai_prerequisites import Deployment, prerequisites_of
from .openpai_task_roles import TaskRoles
from .openpai_templates import secret_variable
from .openpai_variables import TaskRoleNames
from .yaml_source import YamlNode, YamlScalar

_NAME: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}")
_PRIORITIES: Final = {"oppo": "opportunistic", "test": "normal", "prod": "normal", "crit": "urgent"}
_PLUGINS: Final = {
    "ssh": ": there is no SSH to members or between them",
    "teamwise_storage": ": storage is not mounted",
}
_DESCRIPTIVE: Final = ("description", "contributor", "version")
_SHORTEST_SECRET: Final = 8
_SENSITIVE: Final = re.compile(r"(?i)passw|secret|token|credential|api_?key|private_?key")


def read(file: str, node: YamlNode) -> DescribedJob:
    """Return the job of a file of protocol version 2.

    Raises:
        MalformedJobFile: a field is missing or has a wrong value; with its line.
    """
    job = FieldReader.of(file, node)
    _check_version(job)
    name = checked_name(job, "name")
    dropped = [n for key in _DESCRIPTIVE for n in job.drop(key, DOCUMENTATION)]
    prerequisites, lost = prerequisites_of(job)
    dropped += lost
    around = Deployment.of(job)
    dropped += around.not_kept
    retries, lost = retries_of(
        job.whole("jobRetryCount", default=0), job.line("jobRetryCount"), "jobRetryCount"
    )
    dropped += lost
    reader = job.needed_mapping("taskRoles")
    roles = TaskRoles(job=job, prerequisites=prerequisites, around=around)
    found = roles.read(reader)
    dropped += roles.dropped
    priority, lost = _extras(job)
    dropped += lost
    dropped += _secrets(job, found)
    named = job.mapping("secrets")
    scripts = [role.script for role in found]
    used = [
        name
        for name in (() if named is None else named.node.values)
        if any(secret_variable(name) in script for script in scripts)
    ]
    dropped += job.rest()
    return DescribedJob(
        format=JobFileFormat.OPENPAI,
        name=name,
        roles=found,
        must_succeed=roles.must_succeed,
        retries=retries,
        priority=priority,
        prologue=_prologue(name, found),
        secrets=tuple(used),
        not_kept=tuple(sorted(dropped, key=lambda each: each.line)),
    )


def _prologue(job: str, roles: tuple[DescribedRole, ...]) -> str:
    """Return the lines that set OpenPAI's variables; empty for one member that uses none."""
    (first, *others) = roles
    own_ports = openpai_variables.own_ports(first.ports)
    if first.count == 1 and not (others or own_ports or openpai_variables.used(first.script)):
        return ""
    names = (TaskRoleNames(name=r.own_name, count=r.count, ports=r.ports) for r in roles)
    return openpai_variables.prologue(job, names)


def checked_name(job: FieldReader, key: str) -> str:
    """Return the name of the job."""
    name = job.text(key)
    if not _NAME.fullmatch(name):
        raise job.error(
            key, f"The {key} of the job is not valid.", "1 to 128 letters, digits and . _ ~ -"
        )
    return name


def _check_version(job: FieldReader) -> None:
    version = job.text("protocolVersion")
    if version != "2":
        raise job.error(
            "protocolVersion", f"The protocol version {version[:20]!r} is not known.",
            "Version 2, and files of version 1 in JSON, which have no protocolVersion.",
        )  # fmt: skip
    if job.text("type") != "job":
        raise job.error("type", "The file does not describe a job.", "type: job")


def _extras(job: FieldReader) -> tuple[str, list[NotKept]]:
    """Return the priority, and what of the extras is not kept."""
    extras = job.mapping("extras")
    if extras is None:
        return "normal", []
    dropped: list[NotKept] = []
    priority = "normal"
    scheduler = extras.mapping("hivedScheduler")
    if scheduler is not None:
        given = scheduler.text("jobPriorityClass", default="test")
        if given not in _PRIORITIES:
            raise scheduler.error(
                "jobPriorityClass", "The priority class is not known.", "oppo, test, prod or crit."
            )
        priority = _PRIORITIES[given]
        if given == "prod":
            dropped.append(
                scheduler.not_kept("jobPriorityClass", "It becomes 'normal', as 'test' does.")
            )
        roles = scheduler.mapping("taskRoles")
        for role in () if roles is None else roles.node.values:
            of_role = roles and roles.mapping(role)
            if of_role:
                dropped += of_role.drop("skuNum", PLATFORM)
                dropped += of_role.drop("skuType", "Choose a device model with --model.")
                dropped += of_role.rest()
        dropped += scheduler.rest()
    plugins = "com.microsoft.pai.runtimeplugin"
    for each in extras.mappings(plugins):
        plugin = each.text("plugin")
        meaning = _PLUGINS.get(plugin, "")
        dropped.append(each.not_kept("plugin", f"Carrel has no plug-in {plugin[:80]!r}{meaning}."))
    dropped += extras.drop("submitFrom", PLATFORM)
    if extras.text("gangAllocation", default="true") != "true":
        dropped.append(extras.not_kept("gangAllocation", "All members start together."))
    dropped += extras.rest()
    return priority, dropped


def _secrets(job: FieldReader, roles: tuple[DescribedRole, ...]) -> Iterator[NotKept]:
    """Yield what becomes of secrets, and which parameters look like one.

    Raises:
        MalformedJobFile: the value of a secret is in a command in clear.
    """
    secrets = job.mapping("secrets")
    for key, value in {} if secrets is None else secrets.node.values.items():
        assert secrets is not None
        used = any(secret_variable(key) in role.script for role in roles)
        reason = (
            f"It becomes your secret {key[:80]}, which `carrel secret set {key[:80]}` sets."
            if used
            else "No command uses it."
        )
        yield secrets.not_kept(key, f"{reason} Its value here is not stored or sent.")
        text = value.text if isinstance(value, YamlScalar) else ""
        if len(text) >= _SHORTEST_SECRET and any(text in role.script for role in roles):
            raise secrets.error(
                key, f"The value of the secret {key[:80]!r} is also in a command, in clear.",
                "Remove it from the command: commands are stored and shown.",
            )  # fmt: skip
    parameters = job.mapping("parameters")
    for key in () if parameters is None else parameters.node.values:
        assert parameters is not None
        if _SENSITIVE.search(key):
            yield parameters.not_kept(
                key,
                "It looks like a secret, and is in clear in the commands that use it: "
                "`carrel secret` keeps it out of them.",
            )
