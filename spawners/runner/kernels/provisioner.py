"""Kernel provisioners of jupyter_client that fork IPython kernels, or start them as usual.

``carrel-fork`` is for every Jupyter client: a kernel spec names it in its ``metadata``. Kernels of
one account, interpreter and environment share a server; the first one is started as usual, and
starts the server for the next ones.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from jupyter_client.provisioning.local_provisioner import LocalProvisioner
from traitlets import Unicode

from . import forkserver
from .fork_client import ForkedProcess, ForkRefused, ServerAbsent, fork
from .fork_servers import PACKAGES, SOCKET, shared_folder, start_shared
from .forkserver import START_KERNEL

FORK_PROVISIONER: Final = "carrel-fork"
LAUNCHER_MODULE: Final = "ipykernel_launcher"
_OPTIONS: Final = frozenset({"stdin", "stdout", "stderr", "cwd", "env", "extra_arguments"})


class ForkProvisioner(LocalProvisioner):
    """Forks the kernel if a server can; ends like a kernel that was started as usual."""

    process: Any = None
    server = Unicode(
        "",
        help="Path of the fork server's socket; empty for the one that this account shares.",
    ).tag(config=True)

    async def launch_kernel(self, cmd: list[str], **options: Any) -> Any:
        process = await self._fork(cmd, options)
        if process is None:
            return await self.start(cmd, **options)
        self.process = process
        self.pid = self.pgid = process.pid
        self.cwd = options.get("cwd", Path.cwd())
        return self.connection_info

    async def start(self, cmd: list[str], **options: Any) -> Any:
        """Start the kernel as usual."""
        return await super().launch_kernel(cmd, **options)

    async def wait(self) -> int | None:
        await self.wait_exit()
        if not isinstance(self.process, ForkedProcess):
            return await super().wait()
        status = self.process.wait()
        self.process = None
        return status

    async def wait_exit(self) -> None:
        """Return as soon as the process has ended."""
        if self.process is None or self.process.poll() is not None:
            return
        try:
            descriptor = os.pidfd_open(self.process.pid)
        except OSError:
            return  # it has ended; or this system has none, and ``wait`` polls
        loop, ended = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(descriptor, ended.set)
        try:
            await ended.wait()
        finally:
            loop.remove_reader(descriptor)
            os.close(descriptor)

    def refused(self, why: str) -> None:
        """Handle that the kernel is started as usual."""
        self.log.debug("The kernel is not forked: %s", why)

    async def _fork(self, cmd: Sequence[str], options: Mapping[str, Any]) -> ForkedProcess | None:
        words = split_command(cmd)
        stdout = _descriptor(options.get("stdout"), 1)
        stderr = _descriptor(options.get("stderr"), 2)
        # Options of the interpreter would be those of the server.
        if words is None or len(words[0]) > 1 or options.keys() - _OPTIONS:
            return None
        if stdout is None or stderr is None:
            return None
        environment = dict(options.get("env") or os.environ)
        command = [shutil.which(cmd[0], path=environment.get("PATH")) or cmd[0], *cmd[1:]]
        try:
            server = Path(self.server or shared_folder(command[0], environment) / SOCKET)
            with open(os.devnull, "rb") as null:
                return await asyncio.to_thread(
                    fork,
                    server,
                    command,
                    words[1],
                    environment={**environment, "JPY_PARENT_PID": str(os.getpid())},
                    folder=str(options.get("cwd") or os.getcwd()),
                    outputs=(null.fileno(), stdout, stderr),
                )
        except ServerAbsent as error:
            self.log.debug("The kernel is not forked: %s", error)
        except (ForkRefused, OSError) as error:
            self.refused(str(error))
        if not self.server:
            with suppress(OSError):
                folder = shared_folder(command[0], environment)
                start_shared(folder, interpreter=command[0], environment=environment)
        return None


def split_command(command: Sequence[str]) -> tuple[list[str], list[str]] | None:
    """Return the interpreter with its options, and the arguments, of an IPython kernel.

    None for any other command.
    """
    for at, pair in enumerate(pairwise(command)):
        if pair == ("-m", LAUNCHER_MODULE):
            return list(command[:at]), list(command[at + 2 :])
    return None


def _descriptor(output: Any, inherited: int) -> int | None:
    """Return the descriptor of an output; None for a pipe, which only ``Popen`` can create."""
    if output is None:
        return inherited
    if isinstance(output, int):
        return None if output in {subprocess.PIPE, subprocess.DEVNULL} else output
    descriptor: int = output.fileno()
    return descriptor


class JobProvisioner(ForkProvisioner):
    """Starts the kernel of a job, which has a server only if its backend has started one.

    A kernel that is not forked is started outside of the notebook's folder.
    """

    async def _fork(self, cmd: Sequence[str], options: Mapping[str, Any]) -> ForkedProcess | None:
        if not self.server:
            return None
        process = await super()._fork(cmd, options)
        for name, why in () if process is None else process.notes.items():
            self.note(f"carrel: {name} is not imported ahead of a job: {why}\n")
        return process

    async def start(self, cmd: list[str], **options: Any) -> Any:
        words = split_command(cmd)
        if words is not None:
            folder = str(options.get("cwd") or os.getcwd())
            packages = str(Path(self.server).with_name(PACKAGES)) if self.server else ""
            cmd = [*words[0], forkserver.__file__, START_KERNEL, folder, packages, *words[1]]
            options["cwd"] = os.sep
        return await super().start(cmd, **options)

    def note(self, text: str) -> None:
        if self.parent is not None:
            self.parent.note(text)

    def refused(self, why: str) -> None:
        self.note(f"carrel: the kernel is started as usual, not forked: {why}\n")
