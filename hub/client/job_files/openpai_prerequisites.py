"""Read what task roles of OpenPAI name: images, data, scripts, outputs and the deployment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from .description import NotKept
from .field_reader import FieldReader
from .yaml_source import YamlMapping, YamlScalar

_TYPES: Final = ("dockerimage", "data", "script", "output")


@dataclass(frozen=True, slots=True, kw_only=True)
class Prerequisite:
    """An image, data, script or output that task roles name."""

    type: str
    uri: str
    node: YamlMapping
    line: int


def prerequisites_of(
    job: FieldReader,
) -> tuple[Mapping[tuple[str, str], Prerequisite], list[NotKept]]:
    """Return the prerequisites by type and name."""
    found: dict[tuple[str, str], Prerequisite] = {}
    dropped: list[NotKept] = []
    for each in job.mappings("prerequisites"):
        kind, name = each.text("type"), each.text("name")
        if kind not in _TYPES:
            raise each.error(
                "type", f"The prerequisite {name[:80]!r} has an unknown type.",
                f"One of {', '.join(_TYPES)}.",
            )  # fmt: skip
        if (kind, name) in found:
            raise each.error(
                "name", f"The {kind} {name[:80]!r} is here a second time; it is also in line "
                f"{found[kind, name].line}.", "Names that differ.",
            )  # fmt: skip
        uri = each.text("uri") if kind == "dockerimage" else ""
        dropped += each.drop("auth", "A site signs in to registries itself.")
        found[kind, name] = Prerequisite(type=kind, uri=uri, node=each.node, line=each.node.line)
    return found, dropped


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The commands of the default deployment, around those of the task roles."""

    before: Mapping[str, tuple[YamlScalar, ...]]
    after: Mapping[str, tuple[YamlScalar, ...]]
    not_kept: tuple[NotKept, ...]

    @classmethod
    def of(cls, job: FieldReader) -> Deployment:
        defaults = job.mapping("defaults")
        dropped: list[NotKept] = []
        wanted = ""
        if defaults is not None:
            wanted = defaults.text("deployment", default="")
            dropped += defaults.drop("virtualCluster", "Choose a group with --group.")
            dropped += defaults.rest()
        known: list[str] = []
        before: dict[str, tuple[YamlScalar, ...]] = {}
        after: dict[str, tuple[YamlScalar, ...]] = {}
        for each in job.mappings("deployments"):
            name = each.text("name")
            known.append(name)
            if name != wanted:
                dropped.append(each.not_kept("name", "It is not the default deployment."))
                continue
            roles = each.mapping("taskRoles")
            for role in () if roles is None else roles.node.values:
                of_role = roles and roles.mapping(role)
                if of_role:
                    before[role] = of_role.texts("preCommands")
                    after[role] = of_role.texts("postCommands")
                    dropped += of_role.rest()
        if wanted and wanted not in known and defaults is not None:
            raise defaults.error(
                "deployment", f"There is no deployment {wanted[:80]!r}.",
                f"Known: {', '.join(known) or 'none'}.",
            )  # fmt: skip
        return cls(before=before, after=after, not_kept=tuple(dropped))
