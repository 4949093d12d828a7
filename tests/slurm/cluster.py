"""A real Slurm on this machine: slurmctld, slurmdbd on MariaDB, munge, and two nodes.

The nodes are two slurmd of one host with ports of their own. Their GPUs are simulated: character
devices that behave as /dev/null, because a GRES without a file is not counted and drains its node.

Slurm's authentication needs root here: all daemons and jobs run as root. Several clusters can run
side by side.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import psutil

from carrel.hub.interfaces.backend_settings import SlurmOptions

from ..fake_service import eventually
from ..ports import free_port
from ..requirements import need

NODES: Final = ("node1", "node2")
DEVICES: Final = 2
"""Simulated devices of each node, of the type ``sim``."""
PROGRAMS: Final = ("slurmctld", "slurmd", "slurmdbd", "munged", "mariadbd", "sbatch")
START_SECONDS: Final = 60.0

_CONF: Final = """
ClusterName=carreltest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool-%n
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/%n.log
SlurmdParameters=config_overrides
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
MpiDefault=none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU_Memory
DefMemPerCPU=128
GresTypes=gpu
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=task=1
JobAcctGatherParams=OverMemoryKill
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={dbd_port}
AccountingStoragePass={folder}/munge.sock
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=limits
ReturnToService=2
MessageTimeout=5
SlurmctldTimeout=10
SlurmdTimeout=10
KillWait=2
MinJobAge=300
SchedulerParameters=batch_sched_delay=0,sched_interval=1,sched_min_interval=0,bf_interval=1
{nodes}
PartitionName=main Nodes=node[1-2] Default=YES State=UP MaxTime=INFINITE
"""
_NODE: Final = (
    "NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=32 RealMemory=16000 "
    "Gres=gpu:sim:{devices}"
)
_DBD_CONF: Final = """
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={dbd_port}
SlurmUser=root
PidFile={folder}/slurmdbd.pid
LogFile={folder}/slurmdbd.log
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={mariadb_port}
StorageUser=root
StorageLoc=slurm
"""
_MARIADB: Final = (
    "--no-defaults",
    "--user=root",
    "--innodb-buffer-pool-size=16M",
    "--innodb-log-file-size=8M",
    "--innodb-flush-log-at-trx-commit=0",
    "--innodb-doublewrite=0",
)
"""A small database that loses its last moments in a crash of the machine."""


@dataclass(slots=True, kw_only=True)
class SlurmCluster:
    """Attributes:
    folder: everything of the cluster.
    """

    folder: Path
    _processes: dict[str, subprocess.Popen[bytes]] = field(default_factory=dict)

    @property
    def conf(self) -> Path:
        return self.folder / "slurm.conf"

    @property
    def environment(self) -> dict[str, str]:
        return {**os.environ, "SLURM_CONF": str(self.conf)}

    def options(self, **changed: Any) -> SlurmOptions:
        """Return the options of an installation on this cluster."""
        small: dict[str, Any] = {"cpus": 1, "memory": 256 * 2**20, "simulated": ("sim",)}
        return SlurmOptions(**{"conf": str(self.conf)} | small | changed)

    def site_file(self, state: Path, *, memory: str = "512MiB") -> None:
        """Make the state folder of an installation on this cluster, with its carrel.toml."""
        state.mkdir(mode=0o700)
        (state / "carrel.toml").write_text(
            f'[slurm]\nconf = "{self.conf}"\nsimulated = ["sim"]\ncpus = 1\nmemory = "{memory}"\n'
        )

    def start(self) -> None:
        """Start all daemons and wait until both nodes are idle."""
        ports = [free_port() for _ in range(3 + len(NODES))]
        names = {"folder": self.folder, "host": socket.gethostname().split(".")[0]}
        numbers = dict(zip(("ctld_port", "dbd_port", "mariadb_port"), ports, strict=False))
        nodes = "\n".join(
            _NODE.format(name=name, port=port, devices=DEVICES, **names)
            for name, port in zip(NODES, ports[3:], strict=False)
        )
        self.conf.write_text(_CONF.format(nodes=nodes, **names, **numbers))
        (self.folder / "gres.conf").write_text("\n".join(map(self._gres, NODES)) + "\n")
        self._private("slurmdbd.conf", _DBD_CONF.format(**names, **numbers).encode())
        self._private("munge.key", secrets.token_bytes(256))
        for name in ("state", *(f"spool-{node}" for node in NODES)):
            (self.folder / name).mkdir()
        self._start_daemon(
            "munged",
            "--foreground",
            "--force",
            f"--key-file={self.folder}/munge.key",
            f"--socket={self.folder}/munge.sock",
            f"--pid-file={self.folder}/munge.pid",
            f"--log-file={self.folder}/munge.log",
            f"--seed-file={self.folder}/munge.seed",
        )
        # Without its system tables there are no stored procedures, by which slurmdbd finds limits.
        subprocess.run(
            (
                "mariadb-install-db",
                *_MARIADB,
                f"--datadir={self.folder}/data",
                "--skip-test-db",
            ),
            capture_output=True,
            check=True,
        )
        self._start_daemon(
            "mariadbd",
            *_MARIADB,
            "--skip-grant-tables",
            "--skip-log-bin",
            "--performance-schema=OFF",
            "--bind-address=127.0.0.1",
            f"--datadir={self.folder}/data",
            f"--socket={self.folder}/mariadb.sock",
            f"--pid-file={self.folder}/mariadb.pid",
            f"--port={numbers['mariadb_port']}",
        )
        eventually((self.folder / "munge.sock").exists, START_SECONDS)
        eventually(lambda: _listens(numbers["mariadb_port"]), START_SECONDS)
        self.start_daemon("slurmdbd")
        eventually(lambda: _listens(numbers["dbd_port"]), START_SECONDS)
        self.run("sacctmgr", "-i", "add", "cluster", "carreltest")
        for name in ("slurmctld", *NODES):
            self.start_daemon(name)
        self.wait_for_nodes()

    def start_daemon(self, name: str) -> None:
        """Start slurmctld, slurmdbd, or the slurmd of a node."""
        if name in NODES:
            self._start_daemon("slurmd", "-D", "-N", name, as_name=name)
        else:
            self._start_daemon(name, "-D")

    def kill(self, name: str) -> None:
        """Kill slurmctld, slurmdbd, or the slurmd of a node, as a crash does."""
        process = self._processes.pop(name)
        process.kill()
        process.wait()

    def wait_for_nodes(self) -> None:
        """Wait until slurmctld answers and no node is out of service."""

        def ready() -> bool:
            done = self.call("sinfo", "-h", "-N", "-o", "%T")
            states = done.stdout.split()
            good = all(state in ("idle", "mixed", "allocated") for state in states)
            return done.returncode == 0 and len(states) == len(NODES) and good

        eventually(ready, START_SECONDS)

    def call(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of Slurm, which may fail."""
        return subprocess.run(
            command,
            env=self.environment,
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=60,
            check=False,
        )

    def run(self, *command: str) -> str:
        """Run a command of Slurm; return its output."""
        done = self.call(*command)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout

    def submit(self, *options: str, script: str = "sleep 600") -> int:
        """Submit a job from outside Carrel."""
        options = ("--output=/dev/null", "--chdir=/", *options)
        return int(self.run("sbatch", "--parsable", *options, f"--wrap={script}").strip())

    def empty(self) -> None:
        """Cancel all jobs, and wait until all devices are free and all nodes in service."""
        self.call("scancel", "--user=root")
        self.resume()
        eventually(lambda: not self.call("squeue", "-h").stdout.strip(), START_SECONDS)

    def resume(self) -> None:
        """Take nodes that are drained or down into service again."""
        states = self.call("sinfo", "-h", "-N", "-o", "%N %T").stdout.splitlines()
        for name, state in (line.split() for line in states):
            if state.startswith(("drain", "down")):
                self.call("scontrol", "update", f"NodeName={name}", "State=RESUME")

    def stop(self) -> None:
        """Stop all daemons and end what is left of jobs."""
        for name in reversed(self._processes):
            with suppress(ProcessLookupError):
                self._processes[name].kill()
        for process in self._processes.values():
            process.wait()
        self._processes.clear()
        mine = str(self.folder).encode()
        for process in psutil.process_iter():
            if process.pid == os.getpid():
                continue
            with suppress(psutil.Error, ProcessLookupError):
                if process.environ().get("SLURM_CONF", "").encode() == mine + b"/slurm.conf":
                    process.send_signal(signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _gres(self, node: str) -> str:
        folder = self.folder / "dev"
        folder.mkdir(exist_ok=True)
        for number in range(DEVICES):
            os.mknod(folder / f"{node}-{number}", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        return f"NodeName={node} Name=gpu Type=sim File={folder}/{node}-[0-{DEVICES - 1}]"

    def _private(self, name: str, content: bytes) -> None:
        path = self.folder / name
        path.write_bytes(content)
        path.chmod(0o600)

    def _start_daemon(self, program: str, *options: str, as_name: str = "") -> None:
        name = as_name or program
        with (self.folder / f"{name}.out").open("ab") as log:
            self._processes[name] = subprocess.Popen(
                (_path(program), *options),
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )


@contextmanager
def slurm_cluster() -> Iterator[SlurmCluster]:
    """Start a cluster, or skip the test with the reason if Slurm is not installed."""
    missing = [name for name in PROGRAMS if not _path(name)]
    need("slurm", not missing, f"Slurm is not installed: no {', '.join(missing)}.")
    need("slurm", os.geteuid() == 0, "Slurm's daemons need root.")
    cluster = SlurmCluster(folder=Path(tempfile.mkdtemp(prefix="slurm-")))
    cluster.folder.chmod(0o755)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()


def _path(program: str) -> str:
    places: Sequence[str] = (os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin")
    return shutil.which(program, path=os.pathsep.join(places)) or ""


def _listens(port: int) -> bool:
    with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
        return True
    return False
