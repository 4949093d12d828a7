"""Try a Slurm cluster for what Carrel needs: ``carrel slurm check`` and ``carrel doctor``.

Nothing of the cluster is changed. Two kinds of jobs are submitted: one that is held and cancelled
at once, to see whether its comment stays, and one of a second on each node without devices, to see
whether the node shares the state folder, the Python and the clock of this machine.
"""

from __future__ import annotations

import getpass
import json
import os
import secrets
import socket
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from ...hub.errors import BackendFailed, CarrelError, Unavailable
from ...hub.interfaces.backend_settings import BackendSettings, SlurmOptions
from ...hub.messages import units
from ...hub.records.diagnostics import Finding, Severity
from .batch_script import named_options, prologue_lines
from .client import OPERATOR, SlurmAnswer, SlurmClient
from .container_images import file_problem
from .job_states import PROLOGUE_FAILED, JobMark
from .nodes import SlurmNode

_CLOCK_SECONDS: Final = 2.0
"""A larger difference between two clocks makes times on pages and in the ledger wrong."""
_AT_ONCE: Final = 8
_IMMEDIATE_SECONDS: Final = 10
_LEAST_JOB_AGE: Final = 60
_PROBE: Final = """
import importlib.util, json, socket, sys, time
path, address, port = sys.argv[1:]
found = {"time": time.time()}
try:
    with open(path) as file:
        found["text"] = file.read()
except OSError as error:
    found["home"] = str(error)
found["carrel"] = importlib.util.find_spec("carrel") is not None
if port != "0":
    try:
        socket.create_connection((address, int(port)), 5).close()
    except OSError as error:
        found["service"] = str(error)
print(json.dumps(found))
"""
"""Runs on each node: what it sees of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmDoctor:
    """Checks one cluster."""

    client: SlurmClient
    settings: BackendSettings
    options: SlurmOptions

    def findings(self) -> Iterator[Finding]:
        """Yield the findings; the first that is missing may end the checks."""
        try:
            config = self._config()
            nodes = self.client.nodes()
            self.client.jobs()
        except (BackendFailed, Unavailable) as error:
            yield _missing("Slurm", error.message, error.accepted or _CONTROLLER)
            return
        version = config.get("SLURM_VERSION", "of an unknown version")
        yield _fine("Slurm", f"The controller answers (Slurm {version}), and lists jobs as JSON.")
        yield from self._pool(nodes)
        yield self._submission()
        yield self._comment()
        yield self._extensions(config)
        yield from _settings_of(config)
        yield from gang_findings(config)
        yield self._accounts(config)
        yield from self._images()
        yield from self._trials([node for node in nodes if node.is_in(self.options.partition)])

    def _config(self) -> Mapping[str, str]:
        found = {}
        for line in self.client.run("scontrol", "show", "config").splitlines():
            name, equals, value = line.partition("=")
            if equals:
                found[name.strip()] = value.strip()
        return found

    def _images(self) -> Iterator[Finding]:
        """Compare the files of images with their digests, as each first start does."""
        for image in self.options.images:
            subject = f"image {image.reference[: len(image.name) + 20]}"
            if problem := file_problem(image):
                mend = "Put the file back, or list the new build below [[slurm.images]]."
                yield _missing(subject, problem, mend)
            else:
                yield _fine(subject, f"It is {image.source}.")

    def _target(self) -> list[str]:
        return named_options(partition=self.options.partition, account=self.options.account)

    def _pool(self, nodes: tuple[SlurmNode, ...]) -> Iterator[Finding]:
        wanted = self.options.partition
        pool = [node for node in nodes if node.is_in(wanted)]
        if not pool:
            known = sorted({name for node in nodes for name in node.partitions})
            yield _missing(
                "partition",
                f"No node is in a partition {wanted!r}.",
                f"Set partition below [slurm] to one of: {', '.join(known)}.",
            )
            return
        counts: dict[str, int] = {}
        for node in pool:
            for gres in node.gres:
                name = gres.type or self.options.untyped
                counts[name] = counts.get(name, 0) + gres.count
        told = ", ".join(
            f"{count} x {name}{' (simulated)' if name in self.options.simulated else ''}"
            for name, count in sorted(counts.items())
        )
        if told:
            yield _fine("devices", f"{units.count(len(pool), 'node')} with {told}.")
        else:
            yield Finding(
                subject="devices",
                verdict=Severity.WARNING,
                what=f"{units.count(len(pool), 'node')} without devices of the name gpu.",
                mend="Add GresTypes=gpu and Gres=gpu:TYPE:COUNT of the nodes to slurm.conf, and "
                "their files to gres.conf.",
            )
        for node in pool:
            if node.why_not:
                yield Finding(
                    subject=node.name,
                    verdict=Severity.WARNING,
                    what=f"Nothing can start there: {node.why_not}",
                    mend=f"sudo scontrol update NodeName={node.name} State=RESUME",
                )

    def _submission(self) -> Finding:
        """Ask Slurm, without submitting, whether a job with Carrel's options would be accepted."""
        chosen = [*self._target(), *named_options(qos=self.options.qos)]
        limits = [f"--cpus-per-task={self.options.cpus}", "--time=1"]
        if self.options.memory:
            limits.append(f"--mem={self.options.memory // 1024}K")
        try:
            self.client.run(
                "sbatch", "--test-only", *chosen, *limits, *self.options.options, "--wrap=true"
            )
        except CarrelError as error:
            return _missing(
                "submission",
                f"Slurm would refuse Carrel's jobs: {error.message}",
                "Allow this account to submit them (sacctmgr add user), or change partition, "
                "account, qos, cpus, memory or options below [slurm] in carrel.toml.",
            )
        return _fine("submission", "This account may submit jobs with the options of carrel.toml.")

    def _comment(self) -> Finding:
        mark = JobMark(installation="check", lease=f"check-{secrets.token_hex(4)}")
        number = None
        try:
            number = self.client.submit(
                [
                    "--hold",
                    f"--job-name={mark.name}",
                    f"--comment={mark.comment()}",
                    "--output=/dev/null",
                    "--chdir=/",
                    *self._target(),
                ],
                "#!/bin/sh\ntrue\n",
            )
            self.client.forget()
            kept = any(job.id == number and job.mark == mark for job in self.client.jobs())
        except CarrelError as error:
            return Finding(
                subject="comment",
                verdict=Severity.UNKNOWN,
                what=f"It could not be seen whether comments of jobs stay: {error.message}",
            )
        finally:
            if number is not None:
                self.client.signal([number])
        if kept:
            return _fine("comment", "Comments of jobs stay as they were submitted.")
        return Finding(
            subject="comment",
            verdict=Severity.WARNING,
            what="A plug-in of the cluster changes comments of jobs (JobSubmitPlugins). Carrel "
            "finds its jobs by their names then, and does not know which devices they were meant "
            "for.",
            mend="Let the plug-in leave the comments of this account's jobs.",
        )

    def _extensions(self, config: Mapping[str, str]) -> Finding:
        """Find whether this account may raise the time limit of a running job."""
        user = getpass.getuser()
        level = ""
        if user not in ("root", config.get("SlurmUser", "").split("(")[0]):
            query = ("sacctmgr", "-nP", "show", "user", user, "format=AdminLevel")
            try:
                level = self.client.run(*query).strip() or "None"
            except CarrelError:
                level = "None"  # the cluster keeps no accounts
        return extension_finding(user, level)

    def _accounts(self, config: Mapping[str, str]) -> Finding:
        if config.get("AccountingStorageType") == "accounting_storage/slurmdbd":
            return _fine("accounting", "slurmdbd keeps the ends of jobs.")
        age = config.get("MinJobAge", "")
        return Finding(
            subject="accounting",
            verdict=Severity.WARNING,
            what=f"The cluster keeps no accounts: how a job ended is known for {age} only, and "
            "`carrel slurm sync` cannot mirror quotas.",
            mend="Set up slurmdbd, and AccountingStorageType=accounting_storage/slurmdbd.",
        )

    def _trials(self, nodes: list[SlurmNode]) -> Iterator[Finding]:
        ready = [node.name for node in nodes if not node.why_not]
        text = secrets.token_hex(16)
        path = self.settings.state / f".check-{os.getpid()}"
        try:
            path.write_text(text)
        except OSError as error:
            yield _missing("state folder", f"It cannot be written: {error}.", "")
            return
        try:
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
                yield from threads.map(lambda name: self._trial(name, path, text), ready)
        finally:
            path.unlink(missing_ok=True)

    def _trial(self, node: str, path: Path, text: str) -> Finding:
        url = urlsplit(self.settings.service_url)
        address, port = url.hostname or "", url.port or 0
        if not _listens(address, port):
            port = 0  # the site does not run
        before = time.time()
        command = ("-P", "-c", _PROBE, str(path), address, str(port))
        try:
            answer = self.client.run_as_job(
                "srun",
                "--quiet",
                f"--immediate={_IMMEDIATE_SECONDS}",
                f"--nodelist={node}",
                "--nodes=1",
                "--ntasks=1",
                "--time=1",
                "--chdir=/",
                "--export=ALL",
                f"--job-name=carrel-check-{node}",
                *self._target(),
                *self._after_prologue(sys.executable, *command),
            )
        except CarrelError as error:
            return _not_run(node, error.message)
        if answer.code != 0:
            return self._why_not(node, answer)
        return self._judged(node, answer.out, text, before=before, after=time.time())

    def _why_not(self, node: str, answer: SlurmAnswer) -> Finding:
        """Find why the command of a trial failed.

        What Slurm says and what the job says comes in any order.
        """
        if answer.code == PROLOGUE_FAILED:
            return _missing(
                node,
                "The prologue of sessions and jobs fails there.",
                "Run its lines on that node by hand, and mend prologue below [slurm] in "
                "carrel.toml.",
            )
        if "Unable to allocate" in answer.err:
            return _not_run(node, answer.message)
        if self.options.container:
            return _missing(
                node,
                f"Carrel does not run there in a container: {answer.message}",
                f"Run {self.options.container[0]} on that node by hand; in the container, "
                f"{sys.executable} and the state folder must have the same paths. Change "
                "container below [slurm] in carrel.toml.",
            )
        if "execve" in answer.err or "No such file" in answer.err:
            return _missing(
                node, f"It does not have {sys.executable}.", "Install Carrel on a shared path."
            )
        return _not_run(node, answer.message)

    def _after_prologue(self, *command: str) -> tuple[str, ...]:
        command = (*self.options.container, *command)
        lines = prologue_lines(self.options.prologue)
        if not lines:
            return command
        script = "\n".join([*lines, 'exec "$@"'])
        return ("/bin/sh", "-c", script, "sh", *command)

    def _judged(self, node: str, out: str, text: str, *, before: float, after: float) -> Finding:
        try:
            found = json.loads(out.strip().splitlines()[-1])
            at = float(found["time"])
        except (ValueError, LookupError, TypeError):
            what = f"A job of a second did not answer there: {out.strip()[:200]!r}."
            return Finding(subject=node, verdict=Severity.UNKNOWN, what=what)
        if found.get("text") != text:
            told = found.get("home") or "it has another folder of this path"
            return _missing(
                node,
                f"It does not share {self.settings.state} with this machine: {told}.",
                "Mount the file system with the state folder, which has the homes, at the same "
                "path on every node.",
            )
        if not found.get("carrel"):
            return _missing(
                node,
                f"{sys.executable} has no Carrel there.",
                "Install Carrel on a path that all nodes share.",
            )
        if "service" in found:
            return _missing(
                node,
                f"It does not reach the service at {self.settings.service_url}: "
                f"{found['service']}.",
                "Set address below [slurm] to the address of this machine as the nodes reach it, "
                "and open the port in the firewall.",
            )
        apart = max(before - at, at - after, 0.0)
        if apart > _CLOCK_SECONDS:
            return Finding(
                subject=node,
                verdict=Severity.WARNING,
                what=f"Its clock differs from this machine's by {units.duration(apart)}.",
                mend="Synchronise the clocks, for example with chrony; munge needs that as well.",
            )
        return _fine(node, "It shares the state folder, Carrel and the clock of this machine.")


_CONTROLLER: Final = (
    "Install Slurm's client commands and munge with the key of the cluster, and see "
    "`scontrol ping`; conf below [slurm] names another slurm.conf."
)


def extension_finding(user: str, level: str) -> Finding:
    """Return what an admin level of Slurm means for extensions; empty for its own account."""
    if level != "None":
        return _fine("extensions", "Time limits of running sessions and jobs can be extended.")
    return Finding(
        subject="extensions",
        verdict=Severity.WARNING,
        what="Time limits of running sessions and jobs cannot be extended: Slurm lets only its "
        f"operators do so, and {user} is none.",
        mend=f"sudo {OPERATOR.replace('ACCOUNT', user)}",
    )


def gang_findings(config: Mapping[str, str]) -> Iterator[Finding]:
    """Yield a warning if the scheduler does not start jobs on nodes of different kinds."""
    scheduler = config.get("SchedulerType", "sched/backfill")
    if scheduler != "sched/backfill":
        yield Finding(
            subject="jobs on several nodes",
            verdict=Severity.WARNING,
            what=f"{scheduler} does not start heterogeneous jobs: a job whose nodes have different "
            "numbers of members or devices would wait forever.",
            mend="Set SchedulerType=sched/backfill in slurm.conf.",
        )


def _settings_of(config: Mapping[str, str]) -> Iterator[Finding]:
    age = config.get("MinJobAge", "").split()
    if age and age[0].isdigit() and int(age[0]) < _LEAST_JOB_AGE:
        yield Finding(
            subject="MinJobAge",
            verdict=Severity.WARNING,
            what=f"Slurm forgets ended jobs after {age[0]} seconds.",
            mend=f"Set MinJobAge={5 * _LEAST_JOB_AGE} in slurm.conf.",
        )
    if config.get("JobAcctGatherType", "").endswith("/none"):
        yield Finding(
            subject="use figures",
            verdict=Severity.WARNING,
            what="Slurm does not measure what jobs use: pages show neither their CPU nor their "
            "memory.",
            mend="Set JobAcctGatherType=jobacct_gather/cgroup in slurm.conf.",
        )


def _listens(address: str, port: int) -> bool:
    try:
        socket.create_connection((address, port), 1).close()
    except OSError:
        return False
    return True


def _fine(subject: str, what: str) -> Finding:
    return Finding(subject=subject, verdict=Severity.FINE, what=what)


def _missing(subject: str, what: str, mend: str) -> Finding:
    return Finding(subject=subject, verdict=Severity.MISSING, what=what, mend=mend)


def _not_run(node: str, why: str) -> Finding:
    return Finding(
        subject=node,
        verdict=Severity.UNKNOWN,
        what=f"A job of a second did not run there: {why}",
        mend="Try again when the node is less busy.",
    )
