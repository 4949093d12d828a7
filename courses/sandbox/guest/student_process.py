"""Start the student's kernel, and hold it and its snapshots for the supervisor."""

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
    life: a descriptor that becomes readable when the process exits.
    pipes: what it and its children print past Python; of the kernel only.
    door: the socket on which the kernel sends requested snapshots.
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
        """A snapshot that has arrived; the Linux kernel vouches for its process ID."""
        assert self.door is not None
        space = socket.CMSG_SPACE(_CREDENTIALS.size) + socket.CMSG_SPACE(4)
        try:
            _, extras, _, _ = self.door.recvmsg(4096, space, socket.MSG_DONTWAIT)
        except BlockingIOError:
            return None
        pid, descriptor = 0, -1
        for _, kind, data in extras:
            if kind == socket.SCM_CREDENTIALS:
                pid = _CREDENTIALS.unpack(data)[0]
            elif kind == socket.SCM_RIGHTS:
                descriptor = int.from_bytes(data[:4], sys.byteorder)
        if descriptor < 0:
            return None
        end = socket.socket(fileno=descriptor)
        try:
            life = os.pidfd_open(pid)
        except OSError:
            end.close()
            return None
        return StudentProcess(pid=pid, life=life, channel=MessageChannel(end, most_bytes))


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelTemplate:
    """What a kernel is started from.

    Attributes:
        isolate: the guest itself isolates the process; False in a container.
    """

    shell: SandboxShell
    tampering: TamperCheck
    isolate: bool
    bounds: isolation.ProcessBounds | None = None

    def within(self, limits: Message) -> KernelTemplate:
        return replace(
            self,
            bounds=isolation.ProcessBounds(
                memory_bytes=int(number(limits, "memory_bytes")),
                processes=int(number(limits, "processes")) if self.isolate else 0,
                file_bytes=int(number(limits, "file_bytes")),
                disk_bytes=int(number(limits, "disk_bytes")),
                cpus=number(limits, "cpus"),
            ),
        )


def start_kernel(template: KernelTemplate, most_bytes: int) -> StudentProcess:
    """Fork the kernel; when this returns, both processes have given up their rights."""
    ours, theirs = socket.socketpair()
    door, doorway = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    door.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    out, err = os.pipe(), os.pipe()
    pid = os.fork()
    if pid == 0:
        _run_kernel(template, MessageChannel(theirs, most_bytes), doorway, (out[1], err[1]))
    for number_ in (out[1], err[1]):
        os.close(number_)
    theirs.close()
    doorway.close()
    channel = MessageChannel(ours, most_bytes)
    channel.receive()
    if template.isolate:
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


def _run_kernel(
    template: KernelTemplate,
    channel: MessageChannel,
    door: socket.socket,
    output_pipes: tuple[int, int],
) -> NoReturn:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for number_, source in enumerate((nothing, *output_pipes)):
        os.dup2(source, number_)
    _close_others({0, 1, 2, channel.fileno(), door.fileno()})
    if template.isolate:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("1000")
    isolation.give_up_rights()
    assert template.bounds is not None
    isolation.bound(template.bounds)
    isolation.deny_calls()
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        numpy_random.seed()
    channel.send({"ready": True})
    StudentKernel(template.shell, template.tampering, channel, door).serve_commands()


def _close_others(kept: set[int]) -> None:
    for name in os.listdir("/proc/self/fd"):
        if int(name) not in kept:
            with contextlib.suppress(OSError):
                os.close(int(name))
