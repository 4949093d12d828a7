"""Read manifests of FfDL (Fabric for Deep Learning).

The fields are those of its user guide (IBM/FfDL, docs/user-guide.md). Each learner runs the command
with the variables of FfDL. Model and data are not in a manifest: they are in the working folder.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Final

from ...records.gangs import MAX_MEMBERS
from .description import CPU, DOCUMENTATION, DescribedJob, DescribedRole, JobFileFormat, NotKept
from .field_reader import FieldReader
from .yaml_source import YamlNode

ROLE: Final = "learner"
_CUSTOM: Final = "custom"
_MEMORY: Final = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*([KMGT])(i?)[Bb]?", re.IGNORECASE)
_EXPONENTS: Final = {"K": 1, "M": 2, "G": 3, "T": 4}
_CPUS: Final = re.compile(r"[0-9]{1,6}(?:\.[0-9]{1,6})?")
_LONGEST_NAME: Final = 128
_PROLOGUE: Final = """\
# Variables of FfDL
export LEARNER_ID=$((${RANK:-0} + 1)) NUM_LEARNERS=@LEARNERS@ GPU_COUNT=@GPUS@
export DATA_DIR=$PWD MODEL_DIR=$PWD RESULT_DIR=$CARREL_OUTPUT_DIR
export LOG_DIR=$CARREL_OUTPUT_DIR CHECKPOINT_DIR=$CARREL_OUTPUT_DIR
export JOB_STATE_DIR=$CARREL_OUTPUT_DIR
# End of the variables of FfDL
"""


def read(file: str, node: YamlNode) -> DescribedJob:
    """Return the job of a manifest.

    Raises:
        MalformedJobFile: a field is missing or has a wrong value; with its line.
    """
    job = FieldReader.of(file, node)
    framework = job.needed_mapping("framework")
    command = framework.text("command").strip()
    if not command or "\0" in command:
        raise framework.error("command", "The command is not valid.", "A text with a program.")
    image = _image(framework)
    name = job.text("name")
    if not 1 <= len(name) <= _LONGEST_NAME or not name.isprintable():
        raise job.error("name", "The name is not valid.", f"1 to {_LONGEST_NAME} characters.")
    learners = job.whole("learners", default=1, least=1, most=MAX_MEMBERS)
    devices = job.whole("gpus", default=0)
    memory = _memory(job)
    dropped = [n for key in ("description", "version") for n in job.drop(key, DOCUMENTATION)]
    dropped += _cpus(job)
    for number, store in enumerate(job.mappings("data_stores")):
        # Not read any further: its connection has credentials.
        dropped.append(
            NotKept(
                line=store.node.line,
                field=f"data_stores[{number}]",
                reason="Put the data into the working folder, which is DATA_DIR; RESULT_DIR is the "
                "folder of the output files.",
            )
        )
    dropped += job.drop("evaluation_metrics", "Report metrics with carrel.report().")
    dropped += [*framework.rest(), *job.rest()]
    role = DescribedRole(
        name=ROLE,
        own_name=ROLE,
        count=learners,
        devices=devices,
        memory_bytes=memory,
        script=command,
        image=image,
        line=framework.line("version"),
    )
    prologue = _PROLOGUE.replace("@LEARNERS@", str(learners)).replace("@GPUS@", str(devices))
    return DescribedJob(
        format=JobFileFormat.FFDL,
        name=name,
        roles=(role,),
        prologue=prologue,
        needs_files=True,
        not_kept=tuple(sorted(dropped, key=lambda each: each.line)),
    )


def _image(framework: FieldReader) -> str:
    """Return the image: the version of ``custom``, ``NAME:VERSION`` of other frameworks."""
    name, version = framework.text("name"), framework.text("version", default="")
    if name != _CUSTOM:
        return f"{name}:{version}" if version else name
    if not version:
        raise framework.error("version", "A custom framework has no image.", "version: IMAGE")
    return version


def _memory(job: FieldReader) -> int:
    """Return the memory of a learner in bytes: 1Gb and 1GB are 10^9 bytes, 1GiB is 2^30."""
    if not job.has("memory"):
        return 0
    match = _MEMORY.fullmatch(job.text("memory").strip())
    if match is None:
        raise job.error("memory", "The memory has no valid value.", "Such as 300MiB, 1GiB or 16Gb.")
    base = 1024 if match.group(3) else 1000
    return int(Decimal(match.group(1)) * base ** _EXPONENTS[match.group(2).upper()])


def _cpus(job: FieldReader) -> list[NotKept]:
    if not _CPUS.fullmatch(job.text("cpus", default="1")):
        raise job.error("cpus", "The number of CPUs has no valid value.", "Such as 8 or 0.5.")
    return [job.not_kept("cpus", CPU)] if job.has("cpus") else []
