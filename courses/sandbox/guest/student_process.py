"""A process of the student as the warden holds it: the kernel, or a snapshot of it."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import struct
import sys
from dataclasses import dataclass, field, replace
from typing import Final, NoReturn

from . import isolation
from .kernel import StudentKernel
from .messages import Message, MessageChannel, number
from .shell import SandboxShell
from .tamper_check import TamperCheck

_CREDENTIALS: Final = struct.Struct("3i")


@dataclass(slots=True, kw_only=True)
class StudentProcess:
    """Attributes:
    life: a descriptor that can be read once the process is gone.
    pipes: what it and its children print past Python; of the kernel only.
    door: where a snapshot that was asked for appears.
    """

    pid: int
    life: int
    channel: MessageChannel
    pipes: dict[str, int] = field(default_factory=dict)
    door: socket.socket | None = None

    def signal(self, number: signal.Signals) -> None:
        with contextlib.suppress(ProcessLookupError):
            signal.pidfd_send_signal(self.life, number)

    def end(self) -> None:
        self.signal(signal.SIGKILL)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        self.channel.end.close()
        os.close(self.life)

    def arrived(self, most_bytes: int) -> StudentProcess | None:
        """The snapshot that is at the door; the kernel says which process it is."""
        assert self.door is not None
        space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4)
        try:
            _, extras, _, _ = self.door.recvmsg(4096, space, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        pid, line = 0, -1
        for _, kind, data in extras:
            if kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
            elif kind == socket.SCM_RIGHTS:
                line = int.from_bytes(data[:4], sys.byteorder)
        if line < 0:
            return None
        end = socket.socket(fileno=line)
        try:
            life = os.pidfd_open(pid)
        except OSError:
            end.close()
            return None
        return StudentProcess(pid=pid, life=life, channel=MessageChannel(end, most_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTemplate:
    """What a kernel is made of.

    Attributes:
        walled: the cage's own walls are still to be closed; a container has closed them.
    """

    shell: SandboxShell
    prints: TamperCheck
    walled: bool
    bounds: isolation.ProcessBounds | None = None

    def within(self, limits: Message) -> KernelTemplate:
        return replace(
            self,
            bounds=isolation.ProcessBounds(
                memory_bytes=int(number(limits, "memory_bytes")),
                processes=int(number(limits, "processes")) if self.walled else 0,
                file_bytes=int(number(limits, "file_bytes")),
                disk_bytes=int(number(limits, "disk_bytes")),
                cpus=number(limits, "cpus"),
            ),
        )


def start_kernel(start: KernelTemplate, most_bytes: int) -> StudentProcess:
    """Fork it; when this returns, both of us have lost what rights we had."""
    ours, theirs = socket.socketpair()
    door, doorway = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _be_kernel(start, MessageChannel(theirs, most_bytes), doorway, (out[1], err[1]))
    for number_ in (out[1], err[1]):
        os.close(number_)
    theirs.close()
    doorway.close()
    channel = MessageChannel(ours, most_bytes)
    channel.receive()
    if start.walled:
        isolation.close_proc()
    isolation.give_up_rights()
    isolation.hide()
    return StudentProcess(
        pid=pid,
        life=os.pidfd_open(pid),
        channel=channel,
        pipes={"stdout": out[0], "stderr": err[0]},
        door=door,
    )


def _be_kernel(
    start: KernelTemplate, channel: MessageChannel, door: socket.socket, prints_to: tuple[int, int]
) -> NoReturn:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number_, source in enumerate((nothing, *prints_to)):
        os.dup2(source, number_)
    _close_others({0, 1, 2, channel.fileno(), door.fileno()})
    if start.walled:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    isolation.give_up_rights()
    assert start.bounds is not None
    isolation.bound(start.bounds)
    isolation.deny_calls()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    channel.send({"ready": True})
    StudentKernel(start.shell, start.prints, channel, door).obey()


def _close_others(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))
