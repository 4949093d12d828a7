"""Call Slurm's commands: submit, signal and list jobs, and list nodes.

The commands are the interface that every installation has; a REST daemon is optional and needs
tokens. Lists are read as JSON, which Slurm offers since 20.11 with its OpenAPI plug-ins. Each list
is shared for a moment (``FRESH_SECONDS``): a cycle of the service asks slurmctld at most twice,
once for the jobs and once for the nodes.
"""

from __future__ import annotations

import getpass
import json
import os
import subprocess
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Generic, TypeVar

from ...hub.errors import BackendFailed, Unavailable
from ...hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from ...hub.records.utilization import NO_USE, ProcessReading
from .job_states import SlurmJob, by_lease
from .nodes import SlurmNode
from .times import seconds_of

FRESH_SECONDS: Final = 0.8
"""How long a list is used again; shorter than a cycle of the service."""
OPERATOR: Final = "sacctmgr modify user where name=ACCOUNT set adminlevel=Operator"
"""Lets the account of the service raise time limits, which Slurm allows to operators only."""
_POLL_SECONDS: Final = 0.1
_SECONDS: Final = 30.0
"""How long a command may take. slurmctld answers most in milliseconds."""
_SUBMISSION_VARIABLES: Final = frozenset(
    {
        "HOME",
        "LANG",
        "LC_ALL",
        "LD_LIBRARY_PATH",
        "LOGNAME",
        "PATH",
        "SLURM_CONF",
        "SLURM_CONF_SERVER",
        "TMPDIR",
        "TZ",
        "USER",
    }
)
"""Variables that ``sbatch`` may need; jobs get them."""
_AWAY: Final = (
    "unable to contact slurm controller",
    "connection refused",
    "connect failure",
    "socket timed out",
    "communication connection failure",
    "unable to establish controller machine",
    "resource temporarily unavailable",
    "slurm backup controller in standby mode",
    "unable to contact slurmdbd",
    "munge encode failed",
    'failed to access "',
)
"""Parts of messages, in lower case, after which the outcome of a command is unknown."""
_T = TypeVar("_T")


class _Fresh(Generic[_T]):
    """A value that is used again for some seconds; safe to use from any thread."""

    def __init__(self, read: Callable[[], _T], seconds: float) -> None:
        self._read = read
        self._seconds = seconds
        self._lock = threading.Lock()
        self._value: _T | None = None
        self._read_at = 0.0

    def value(self) -> _T:
        with self._lock:
            if self._value is None or time.monotonic() - self._read_at >= self._seconds:
                began = time.monotonic()
                self._value = self._read()
                self._read_at = began
            return self._value

    def forget(self) -> None:
        with self._lock:
            self._value = None


_PREFIXES: Final = tuple(
    f"{each}: " for each in ("sbatch", "scancel", "squeue", "sinfo", "sacct", "srun", "error")
)


@dataclass(frozen=True, slots=True)
class SlurmAnswer:
    """What a command of Slurm has answered: its exit status, and its outputs."""

    code: int
    out: str
    err: str

    @property
    def message(self) -> str:
        """The last line of the error output, without the name of the command."""
        lines = [line for line in self.err.splitlines() if line.strip()] or [self.out.strip()]
        text = lines[-1]
        for prefix in _PREFIXES:
            text = text.removeprefix(prefix)
        text = text.removeprefix("slurm_update error: ")
        return text.removeprefix("Batch job submission failed: ").rstrip(".")

    @property
    def away(self) -> bool:
        text = self.err.lower()
        return any(part in text for part in _AWAY)


def options_of(settings: BackendSettings) -> SlurmOptions:
    """Return the options of the Slurm engine. Raises BackendFailed for another engine."""
    if settings.slurm is None:
        raise BackendFailed("The options of the Slurm engine are missing.")
    return settings.slurm


class SlurmClient:
    """The commands of one Slurm cluster; safe to use from any thread.

    Args:
        conf: the path of slurm.conf; empty for the default of the commands.
        fresh_seconds: how long a list is used again.
    """

    def __init__(self, conf: str = "", *, fresh_seconds: float = FRESH_SECONDS) -> None:
        self._environment = {**os.environ, **({"SLURM_CONF": conf} if conf else {})}
        self._job_environment = {"USER": getpass.getuser()} | {
            name: value
            for name, value in self._environment.items()
            if name in _SUBMISSION_VARIABLES or name.startswith("SBATCH_")
        }
        self._jobs = _Fresh(self._list_jobs, fresh_seconds)
        self._nodes = _Fresh(self._list_nodes, fresh_seconds)

    def submit(
        self,
        options: Sequence[str],
        script: str,
        *,
        command: Sequence[str] = ("sbatch", "--parsable"),
        environment: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """Submit a batch script; return the id of the job.

        Args:
            environment: variables of the job, beside those that ``sbatch`` itself needs. No others
                of this process reach it, as some are secrets.

        Raises:
            BackendFailed: Slurm refused it.
            Unavailable: slurmctld did not answer, so that the outcome is unknown.
        """
        # With any other value, nodes run a login shell of the account before the script.
        exported = "--export=ALL"
        answer = self._run(
            *command,
            exported,
            *options,
            text=script,
            environment={**self._job_environment, **environment},
        )
        self._jobs.forget()
        if answer.code != 0:
            raise BackendFailed(f"Slurm refused the job: {answer.message}.")
        try:
            return int(answer.out.strip().split(";")[0])
        except ValueError:
            raise Unavailable(
                f"sbatch answered {answer.out.strip()!r}, not the id of a job."
            ) from None

    def signal(
        self, jobs: Sequence[int | str], name: str = "", *, steps_only: bool = False
    ) -> None:
        """Send a signal to all processes of jobs or steps; without a name, cancel them.

        Those that have ended are skipped. Slurm ends the processes of a cancelled job with SIGTERM
        and SIGKILL.

        Args:
            steps_only: whether the batch scripts of jobs get no signal.

        Raises:
            Unavailable: slurmctld did not answer.
        """
        if not jobs:
            return
        options = (f"--signal={name}", *(() if steps_only else ("--full",))) if name else ()
        self._run("scancel", *options, *(str(job) for job in jobs))
        self._jobs.forget()

    def steps(self, job: SlurmJob, name: str) -> tuple[str, ...]:
        """Return the ids of the steps of this name that run, such as ``42.0``.

        Raises:
            Unavailable: slurmctld did not answer.
        """
        jobs = ",".join(map(str, job.ids))
        answer = self._run("squeue", "--steps", "--noheader", "--format=%i|%j", f"--jobs={jobs}")
        steps = (line.strip().partition("|") for line in answer.out.splitlines())
        return tuple(step for step, _, found in steps if found == name)

    def extend(self, jobs: Sequence[SlurmJob], minutes: int) -> None:
        """Raise the time limits of jobs to at least this.

        Raises:
            BackendFailed: Slurm refused it.
            Unavailable: slurmctld did not answer.
        """
        for job in jobs:
            if job.minutes < minutes:
                self.run("scontrol", "update", f"JobId={job.id}", f"TimeLimit={minutes}")
        self._jobs.forget()

    def run_inside(self, job: SlurmJob, command: Sequence[str], *, rank: int | None = None) -> None:
        """Run a command on the node of a running job, beside it and within its limits.

        Args:
            rank: of the member of a gang on whose node it runs.

        Raises:
            BackendFailed: it could not be started, or failed.
            Unavailable: slurmctld did not answer.
        """
        beside = ["--overlap", "--nodes=1", "--ntasks=1", "--gres=none", "--mem=0", "--quiet"]
        if rank is not None and job.mark is not None:
            node = job.mark.members.get(rank, "")
            beside += [f"--nodelist={node}"] if node else []
            beside += [f"--het-group={job.part_of(rank).component}"] if job.parts else []
        self.run("srun", f"--jobid={job.id}", *beside, *command)

    def jobs(self) -> tuple[SlurmJob, ...]:
        """Return all jobs that slurmctld knows, of all users, ended ones for some minutes.

        Raises:
            Unavailable: slurmctld did not answer, or Slurm has no JSON output.
        """
        return self._jobs.value()

    def live_jobs(self, installation: str) -> dict[str, SlurmJob]:
        """Return the jobs that have not ended, as of now, by lease.

        Raises as ``jobs``.
        """
        self._jobs.forget()
        jobs = by_lease(self.jobs(), installation)
        return {group: job for group, job in jobs.items() if not job.has_ended}

    def end(
        self, live: Callable[[], Collection[SlurmJob]], ladder: Sequence[tuple[str, float]]
    ) -> bool:
        """Send the signals of a ladder until none of these jobs lives; cancel pending ones.

        Args:
            live: lists those that live.
            ladder: each signal with the seconds that it has.

        Returns:
            whether all have ended.

        Raises as ``jobs``.
        """
        left = live()
        ends = time.monotonic()
        for name, seconds in ladder:
            ends += seconds
            # A pending job has no process to signal.
            self.signal([job.id for job in left if job.is_pending])
            started = [job.id for job in left if not job.is_pending]
            gangs = [job.id for job in left if not job.is_pending and job.is_gang]
            self.signal([each for each in started if each not in gangs], name)
            self.signal(gangs, name, steps_only=True)
            if name == "KILL":
                # Slurm takes a job for running whose last process ended while its node's slurmd
                # was down, until it is cancelled.
                self.signal(started)
            while left and time.monotonic() < ends:
                time.sleep(_POLL_SECONDS)
                left = live()
            if not left:
                return True
        return False

    def end_steps(
        self,
        running: Callable[[], Collection[str] | None],
        ladder: Sequence[tuple[str, float]],
    ) -> bool:
        """Send the signals of a ladder until none of these steps runs.

        Args:
            running: lists the steps; None while they have not started.
            ladder: each signal with the seconds that it has.

        Returns:
            whether all have ended.

        Raises as ``jobs``.
        """
        ends = time.monotonic()
        for name, seconds in ladder:
            ends += seconds
            left = running()
            if left:
                self.signal(list(left), name, steps_only=True)
            while left != () and time.monotonic() < ends:
                time.sleep(_POLL_SECONDS)
                left = running()
            if left == ():
                return True
        return False

    def nodes(self) -> tuple[SlurmNode, ...]:
        """Return all nodes. Raises as ``jobs``."""
        return self._nodes.value()

    def usage(self, jobs: Sequence[int]) -> dict[int, ProcessReading]:
        """Return what running jobs use, as Slurm last sampled it (``JobAcctGatherFrequency``).

        Jobs without a sample are missing.

        Raises:
            Unavailable: slurmctld did not answer.
        """
        if not jobs:
            return {}
        names = ",".join(str(job) for job in jobs)
        fields = "--format=JobID,AveCPU,NTasks,MaxRSS"
        answer = self._run("sstat", "--allsteps", "-n", "-P", "--noconvert", fields, "-j", names)
        found: dict[int, ProcessReading] = {}
        for line in answer.out.splitlines():
            step, cpu, tasks, memory = line.split("|")
            job = int(step.partition(".")[0])
            found[job] = found.get(job, NO_USE) + ProcessReading(
                cpu_seconds=seconds_of(cpu) * int(tasks or 1),
                memory_bytes=int(float(memory or 0)),
            )
        return found

    def accounted(self, names: Sequence[str]) -> tuple[SlurmJob, ...]:
        """Return the jobs of these names that slurmctld no longer knows, from the accounting.

        Raises:
            BackendFailed: the cluster keeps no accounts.
            Unavailable: slurmdbd did not answer.
        """
        since = "--starttime=now-30days"
        answer = self._run("sacct", "--json", "--duplicates", since, f"--name={','.join(names)}")
        return tuple(SlurmJob.from_sacct(each) for each in self._parsed(answer, "sacct", "jobs"))

    def forget(self) -> None:
        """Read both lists again when they are asked for next."""
        self._jobs.forget()
        self._nodes.forget()

    def run(self, *command: str) -> str:
        """Run a command of Slurm; return its output.

        Raises:
            BackendFailed: it failed.
            Unavailable: slurmctld or slurmdbd did not answer.
        """
        answer = self._run(*command)
        if answer.code != 0:
            raise BackendFailed(f"{command[0]}: {answer.message}.")
        return answer.out

    def run_as_job(self, *command: str) -> SlurmAnswer:
        """Run a command with the variables of a submitted job only, not all of this process.

        Returns:
            its answer, also when it failed. The status of ``srun`` is that of what it ran.

        Raises:
            BackendFailed: it is not installed.
            Unavailable: slurmctld did not answer.
        """
        return self._run(*command, environment=self._job_environment)

    def _list_jobs(self) -> tuple[SlurmJob, ...]:
        asked = time.time()
        found = self._listed("jobs", "squeue", "--json", "--all")
        return tuple(SlurmJob.from_squeue(each, listed_at=asked) for each in found)

    def _list_nodes(self) -> tuple[SlurmNode, ...]:
        return tuple(map(SlurmNode.from_json, self._listed("nodes", "sinfo", "--json")))

    def _listed(self, key: str, *command: str) -> Sequence[Mapping[str, Any]]:
        """Return a list of slurmctld, without which nothing is known. Raises Unavailable."""
        try:
            return self._parsed(self._run(*command), command[0], key)
        except BackendFailed as error:
            raise Unavailable(error.message, accepted=error.accepted) from error

    def _parsed(self, answer: SlurmAnswer, command: str, key: str) -> Sequence[Mapping[str, Any]]:
        if answer.code == 0:
            try:
                parsed: Mapping[str, Any] = json.loads(answer.out)
            except ValueError:
                pass
            else:
                return parsed[key]  # type: ignore[no-any-return]  # checked by its reader
        if "json" in answer.err.lower():
            raise BackendFailed(
                f"This Slurm cannot list its jobs as JSON: {answer.message}.",
                accepted="Install its JSON serializer and OpenAPI plug-ins: Debian has them in "
                "slurm-wlm-basic-plugins; other builds of Slurm need json-c.",
            )
        raise BackendFailed(f"{command} failed: {answer.message}.")

    def _run(
        self,
        *command: str,
        text: str | None = None,
        environment: Mapping[str, str] | None = None,
    ) -> SlurmAnswer:
        try:
            done = subprocess.run(
                command,
                input=text,
                stdin=subprocess.DEVNULL if text is None else None,
                capture_output=True,
                text=True,
                errors="replace",
                env=self._environment if environment is None else environment,
                timeout=_SECONDS,
                check=False,
            )
        except FileNotFoundError:
            raise BackendFailed(
                f"The command {command[0]} is not installed on this machine.",
                accepted="Install Slurm's client commands, of the version of the cluster.",
            ) from None
        except subprocess.TimeoutExpired:
            raise Unavailable(
                f"{command[0]} did not answer within {_SECONDS:.0f} seconds."
            ) from None
        answer = SlurmAnswer(done.returncode, done.stdout, done.stderr)
        if answer.code != 0 and answer.away:
            raise Unavailable(f"Slurm's controller does not answer: {answer.message}.")
        return answer
