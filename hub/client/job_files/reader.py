"""Read a job file of any known format."""

from __future__ import annotations

from . import ffdl, openpai, openpai_v1
from .description import DescribedJob, JobFileFormat
from .yaml_source import MalformedJobFile, YamlMapping, YamlNode, parse

_KNOWN = (
    "A job file of OpenPAI (protocolVersion: 2, or jobName in JSON), or a manifest of FfDL "
    "(framework: …)."
)


def read(file: str, content: bytes, format: JobFileFormat | None = None) -> DescribedJob:
    """Return the job of a file.

    Args:
        file: its name, for errors.
        format: None to recognize it by the keys of the file.

    Raises:
        MalformedJobFile: the file is not of the format, or malformed; with its line.
    """
    node = parse(file, content)
    found = format or _format(file, node)
    if found is JobFileFormat.FFDL:
        return ffdl.read(file, node)
    if isinstance(node, YamlMapping) and "jobName" in node.values:
        return openpai_v1.read(file, node)
    return openpai.read(file, node)


def _format(file: str, node: YamlNode) -> JobFileFormat:
    keys = node.values.keys() if isinstance(node, YamlMapping) else ()
    if "protocolVersion" in keys or "jobName" in keys or "taskRoles" in keys:
        return JobFileFormat.OPENPAI
    if "framework" in keys:
        return JobFileFormat.FFDL
    raise MalformedJobFile(
        file, node.line, "This is not a job file of a known platform.", accepted=_KNOWN
    )
