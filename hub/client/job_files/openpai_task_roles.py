"""Read the task roles of a job file of OpenPAI."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from ...records.gangs import MAX_MEMBERS
from . import openpai_variables
from .completion import CompletionPolicy, required_roles
from .description import CONTAINER, CPU, PORTS, DescribedRole, NotKept
from .field_reader import FieldReader
from .openpai_prerequisites import Deployment, Prerequisite
from .openpai_templates import TemplateScope
from .role_names import role_names
from .yaml_source import MalformedJobFile, YamlNode, YamlScalar

MEBIBYTE: Final = 2**20
MOST_PORTS: Final = 32
_LABEL: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")


class TaskRoles:
    """Reads the task roles; afterwards it knows what is not kept and which must succeed."""

    def __init__(
        self,
        *,
        job: FieldReader,
        prerequisites: Mapping[tuple[str, str], Prerequisite],
        around: Deployment,
    ) -> None:
        self.file = job.file
        self.prerequisites = prerequisites
        self.around = around
        self.parameters = job.get("parameters")
        self.secrets = job.get("secrets")
        self.dropped: list[NotKept] = []
        self.policies: list[CompletionPolicy] = []
        self.must_succeed: tuple[str, ...] = ()

    def read(self, reader: FieldReader) -> tuple[DescribedRole, ...]:
        names = role_names(self.file, reader.node.lines, reader.node.line)
        self._check_deployment(reader)
        roles = tuple(
            self._role(reader.needed_mapping(own), own, name) for own, name in names.items()
        )
        checked_members(self.file, reader.node.line, roles)
        self.must_succeed, lost = required_roles(self.policies)
        self.dropped += lost
        return roles

    def _check_deployment(self, reader: FieldReader) -> None:
        for role in self.around.before:
            if role not in reader.node.values:
                raise MalformedJobFile(
                    self.file, reader.node.line,
                    f"The default deployment has commands for {role[:80]!r}, no task role.",
                    accepted=f"Known: {', '.join(reader.node.values)[:300]}.",
                )  # fmt: skip

    def _role(self, role: FieldReader, own: str, name: str) -> DescribedRole:
        count = role.whole("instances", default=1, least=1)
        self.policies.append(self._completion(role, name, count))
        image = self._prerequisite(role, "dockerImage", "dockerimage", needed=True)
        resources = role.needed_mapping("resourcePerInstance")
        devices = resources.whole("gpu", default=0)
        memory = resources.whole("memoryMB", default=0, most=2**40)
        self.dropped += resources.drop("cpu", CPU)
        ports = self._ports(resources)
        script = self._script(role, own)
        self.dropped += resources.rest()
        self.dropped += role.drop("extraContainerOptions", CONTAINER)
        if role.whole("taskRetryCount", default=0):
            self.dropped.append(
                role.not_kept("taskRetryCount", "A job is retried with all its members.")
            )
        self.dropped += role.rest()
        assert image is not None
        return DescribedRole(
            name=name,
            own_name=own,
            count=count,
            devices=devices,
            memory_bytes=memory * MEBIBYTE,
            script=script,
            image=image.uri,
            line=image.line,
            ports=ports,
        )

    def _completion(self, role: FieldReader, name: str, count: int) -> CompletionPolicy:
        policy = role.mapping("completion")
        succeeded = failed = None
        if policy is not None:
            if policy.has("minSucceededInstances"):
                succeeded = policy.whole("minSucceededInstances", least=-1)
            if policy.has("minFailedInstances"):
                failed = policy.whole("minFailedInstances", least=-1)
            self.dropped += policy.rest()
        return CompletionPolicy(
            role=name,
            count=count,
            succeeded=succeeded or None,
            failed=failed or None,
            line=role.line("completion"),
            field=f"{role.path}completion",
        )

    def _prerequisite(
        self, role: FieldReader, key: str, kind: str, *, needed: bool = False
    ) -> Prerequisite | None:
        if not needed and not role.has(key):
            return None
        name = role.text(key)
        found = self.prerequisites.get((kind, name))
        if found is None:
            known = ", ".join(n for k, n in self.prerequisites if k == kind)[:300] or "none"
            raise role.error(key, f"There is no {kind} {name[:80]!r}.", f"Known: {known}.")
        return found

    def _ports(self, resources: FieldReader) -> tuple[tuple[str, int], ...]:
        reader = resources.mapping("ports")
        if reader is None or not reader.node.values:
            return ()
        for label, line in reader.node.lines.items():
            if not _LABEL.fullmatch(label):
                raise MalformedJobFile(
                    self.file, line, f"The label {label[:80]!r} of a port is not valid.",
                    accepted="Letters, digits and underscores, and no digit first.",
                )  # fmt: skip
        self.dropped.append(resources.not_kept("ports", PORTS))
        ports = tuple((x, reader.whole(x, least=1, most=MOST_PORTS)) for x in reader.node.values)
        if sum(number for _, number in ports) > MOST_PORTS:
            raise resources.error("ports", "There are too many ports.", f"At most {MOST_PORTS}.")
        return ports

    def _script(self, role: FieldReader, own: str) -> str:
        values: dict[str, YamlNode] = {}
        if self.parameters is not None:
            values["parameters"] = self.parameters
        for kind in ("data", "script", "output"):
            found = self._prerequisite(role, kind, kind)
            if found is not None:
                values[kind] = found.node
        if self.secrets is not None:
            values["secrets"] = self.secrets
        scope = TemplateScope(file=self.file, role=own, values=values)
        commands = (
            *self.around.before.get(own, ()),
            *role.texts("commands"),
            *self.around.after.get(own, ()),
        )
        # Trimmed and joined before the templates are filled in, as rest-server does.
        texts = [
            scope.filled(YamlScalar(line=each.line, text=each.text.strip(), plain=False))
            for each in commands
        ]
        script = "\n".join(texts).strip()
        if not script or "\0" in script:
            wrong = "has commands with the character NUL" if script else "has no commands"
            raise role.error("commands", f"The task role {own} {wrong}.", "A list of commands.")
        for each, text in zip(commands, texts, strict=True):
            self.dropped += unset_variables(each.line, f"{role.path}commands", text)
        return script


def unset_variables(line: int, field: str, text: str) -> Iterator[NotKept]:
    """Yield the variables of OpenPAI in a command that Carrel does not set."""
    for variable in openpai_variables.used(text):
        if not openpai_variables.is_set(variable):
            yield NotKept(line=line, field=field, reason=f"{variable[:80]} is not set.")


def checked_members(file: str, line: int, roles: tuple[DescribedRole, ...]) -> None:
    """Raise MalformedJobFile for more members than any site can run."""
    members = sum(role.count for role in roles)
    if members > MAX_MEMBERS:
        raise MalformedJobFile(
            file, line, f"The job has {members:,} instances.",
            accepted=f"At most {MAX_MEMBERS} in all task roles together.",
        )  # fmt: skip
