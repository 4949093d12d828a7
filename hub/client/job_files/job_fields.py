"""Build the fields of a job from a job file, as far as they do not depend on a site."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...schemas.requests import LONGEST_ARGUMENT
from .description import DescribedJob, DescribedRole, NotKept
from .yaml_source import MalformedJobFile

NAME_LABEL: Final = "name"
SHELL: Final = ("bash", "-c")


def job_fields(file: str, job: DescribedJob) -> dict[str, object]:
    """Return the fields of the body of a job, without images, group and working folder.

    One role with one member becomes a job without roles.

    Raises:
        MalformedJobFile: the commands of a role are too long.
    """
    fields: dict[str, object] = {"labels": {NAME_LABEL: job.name}}
    if job.retries is not None:
        fields["retries"] = job.retries
    if job.priority != "normal":
        fields["priority"] = job.priority
    if job.secrets:
        fields["secrets"] = [f"{name}:env" for name in job.secrets]
    memory = memory_bytes(job)
    if memory:
        fields["memory_bytes"] = memory
    if is_single(job):
        (role,) = job.roles
        return fields | {"command": _command(file, job, role), "devices": role.devices}
    fields["roles"] = [
        {
            "name": role.name,
            "command": _command(file, job, role),
            "devices": role.devices,
            "count": role.count,
        }
        for role in job.roles
    ]
    if job.must_succeed:
        fields["must_succeed"] = list(job.must_succeed)
    return fields


def is_single(job: DescribedJob) -> bool:
    """Return whether the job has one member, and therefore no roles."""
    return len(job.roles) == 1 and job.roles[0].count == 1


def memory_bytes(job: DescribedJob) -> int:
    """Return the memory limit of each member: the largest of the roles, 0 if one has none."""
    sizes = [role.memory_bytes for role in job.roles]
    return max(sizes) if all(sizes) else 0


def memory_difference(job: DescribedJob) -> Iterator[NotKept]:
    """Yield that roles have different memory in the file, and one limit here."""
    size = memory_bytes(job)
    other = [role for role in job.roles if role.memory_bytes != size]
    if other:
        limit = f"{size >> 20:,} MiB" if size else "no limit"
        names = ", ".join(role.name for role in other)
        reason = f"Memory is the same for each member: {names} gets {limit}."
        yield NotKept(line=other[0].line, field="memory", reason=reason)


def with_images(fields: dict[str, object], images: Mapping[str, str]) -> dict[str, object]:
    """Return the fields with the image of each role; empty names are left out.

    Args:
        images: by the name of the role.
    """
    roles = fields.get("roles")
    if isinstance(roles, list):
        return fields | {
            "roles": [
                role | ({"image": images[role["name"]]} if images.get(role["name"]) else {})
                for role in roles
            ]
        }
    image = next(iter(images.values()), "")
    return fields | ({"image": image} if image else {})


def _command(file: str, job: DescribedJob, role: DescribedRole) -> list[str]:
    script = f"{job.prologue}{role.script}"
    if len(script) > LONGEST_ARGUMENT:
        raise MalformedJobFile(
            file, role.line, f"The commands of {role.own_name} have {len(script):,} characters.",
            accepted=f"At most {LONGEST_ARGUMENT:,}: put them into a script.",
        )  # fmt: skip
    return [*SHELL, script]
