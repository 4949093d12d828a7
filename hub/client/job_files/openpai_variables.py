"""Set the environment variables of OpenPAI in front of the commands of an imported job.

They are those that rest-server and runtime of OpenPAI set (``PAI_HOST_IP_worker_0``,
``PAI_PORT_LIST_worker_0_ssh``, …), from the variables of Carrel's members. Ports are numbers that
differ within a job; Carrel does not reserve them. The first line has roles, counts and ports, so
that an export can recover the names of the file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

_FIRST: Final = "# Variables of OpenPAI"
_LAST: Final = "# End of the variables of OpenPAI"
_ALWAYS: Final = (("ssh", 1), ("http", 1))
"""Ports that OpenPAI gives each task role."""
_PROLOGUE: Final = r"""# Variables of OpenPAI
pai_job='@JOB@' pai_roles='@ROLES@'
IFS=, read -ra pai_hosts <<< "${CARREL_ADDRESSES:-127.0.0.1}"
pai_rank=0 pai_number=0 pai_next=$((20000 + ${MASTER_PORT:-$RANDOM} % 9000)) pai_names=
for pai_role in $pai_roles; do
  IFS=: read -r pai_name pai_count pai_ports <<< "$pai_role"
  pai_names+=,$pai_name pai_number=$((pai_number + 1)) pai_list=
  export "PAI_TASK_ROLE_TASK_COUNT_$pai_name=$pai_count"
  for ((pai_index = 0; pai_index < pai_count; pai_index++)); do
    pai_host=${pai_hosts[pai_rank]}
    export "PAI_HOST_IP_${pai_name}_$pai_index=$pai_host"
    for pai_port in ${pai_ports//,/ }; do
      pai_label=${pai_port%%=*} pai_numbers=
      for ((pai_left = ${pai_port##*=}; pai_left > 0; pai_left--)); do
        pai_numbers+=,$((pai_next++))
      done
      export "PAI_PORT_LIST_${pai_name}_${pai_index}_$pai_label=${pai_numbers#,}"
      if [ "$pai_label" = http ]; then pai_http=${pai_numbers#,}; fi
      if [ "$pai_rank" = "${RANK:-0}" ]; then
        export "PAI_CONTAINER_HOST_${pai_label}_PORT_LIST=${pai_numbers#,}"
      fi
    done
    pai_list+=,$pai_host:$pai_http
    if [ "$pai_rank" = "${RANK:-0}" ]; then
      export PAI_CURRENT_TASK_ROLE_NAME=$pai_name PAI_CURRENT_TASK_ROLE_TASK_COUNT=$pai_count
      export PAI_CURRENT_TASK_ROLE_CURRENT_TASK_INDEX=$pai_index PAI_TASK_INDEX=$pai_index
      export PAI_CURRENT_CONTAINER_IP=$pai_host PAI_CURRENT_CONTAINER_PORT=$pai_http
    fi
    pai_rank=$((pai_rank + 1))
  done
  export "PAI_TASK_ROLE_${pai_name}_HOST_LIST=${pai_list#,}"
done
export PAI_JOB_NAME=$pai_job PAI_WORK_DIR=$PWD
export PAI_TASK_ROLE_COUNT=$pai_number PAI_TASK_ROLE_LIST=${pai_names#,}
# End of the variables of OpenPAI
"""
_VARIABLE: Final = re.compile(r"\bPAI_\w+")
_SET: Final = re.compile(
    r"PAI_(?:JOB_NAME|WORK_DIR|TASK_INDEX|TASK_ROLE_COUNT|TASK_ROLE_LIST|TASK_ROLE_TASK_COUNT_\w+"
    r"|TASK_ROLE_\w+_HOST_LIST|HOST_IP_\w+|PORT_LIST_\w+|CONTAINER_HOST_\w+_PORT_LIST"
    r"|CURRENT_TASK_ROLE_(?:NAME|TASK_COUNT|CURRENT_TASK_INDEX)|CURRENT_CONTAINER_(?:IP|PORT))"
)
_HEADER: Final = re.compile(r"pai_job='([^']*)' pai_roles='([^']*)'")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskRoleNames:
    """What the prologue of a script says of a task role: its name in the file, and its ports."""

    name: str
    count: int
    ports: tuple[tuple[str, int], ...]


def prologue(job: str, roles: Iterable[TaskRoleNames]) -> str:
    """Return the lines of bash that set the variables.

    Args:
        job: its name; letters, digits and ``._~-`` only, as are names of roles and ports.
    """
    shown = " ".join(
        f"{role.name}:{role.count}:"
        + ",".join(f"{label}={number}" for label, number in _with_usual(role.ports).items())
        for role in roles
    )
    return _PROLOGUE.replace("@JOB@", job).replace("@ROLES@", shown)


def split(script: str) -> tuple[str, str, tuple[TaskRoleNames, ...]]:
    """Return the name of the job, the script without its prologue, and the task roles.

    Name and roles are empty for a script without prologue.
    """
    head, end, rest = script.partition(f"{_LAST}\n")
    lines = head.splitlines()
    match = _HEADER.fullmatch(lines[1]) if end and len(lines) > 1 and lines[0] == _FIRST else None
    if match is None:
        return "", script, ()
    roles = tuple(_names(each) for each in match.group(2).split())
    return match.group(1), rest, roles


def used(text: str) -> Sequence[str]:
    """Return the variables of OpenPAI in a text, without duplicates."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


def is_set(variable: str) -> bool:
    """Return whether the prologue sets a variable."""
    return _SET.fullmatch(variable) is not None


def own_ports(ports: Iterable[tuple[str, int]]) -> tuple[tuple[str, int], ...]:
    """Return the ports that a file adds to those of each task role, or changes."""
    return tuple(each for each in ports if each not in _ALWAYS)


def _with_usual(ports: tuple[tuple[str, int], ...]) -> dict[str, int]:
    return dict(_ALWAYS) | dict(ports)


def _names(text: str) -> TaskRoleNames:
    name, count, ports = text.split(":")
    pairs = [port.partition("=") for port in ports.split(",")]
    numbers = [(label, int(number)) for label, _, number in pairs]
    return TaskRoleNames(name=name, count=int(count), ports=own_ports(numbers))
