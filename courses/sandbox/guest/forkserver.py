"""Import once what notebooks need, and fork a sandbox for each submission.

The fork server runs in the bubblewrap of a whole grading run and never executes student code. The
engine sends it one end of a socket for each sandbox; it exits when the engine disconnects.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import os
import signal
import socket
import sys
from collections.abc import Iterable
from typing import Final, NoReturn

from . import isolation
from .shell import make_shell
from .student_process import KernelTemplate
from .supervisor import serve
from .tamper_check import TamperCheck

_UNPRIVILEGED_UID: Final = 65534
_FIRST_TIMES: Final = ("None", "0", "1 / 0", "%precision", "def f(:", "display(0)")
"""Cells that are slow the first time: showing a value, a traceback, finding a magic."""


def prepare(modules: Iterable[str], *, isolate: bool) -> KernelTemplate:
    """Import modules and start a shell, for all kernels together."""
    for name in modules:
        # It raises the same again where a notebook imports it, and is shown there.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    shell = make_shell()
    for source in _FIRST_TIMES:
        shell.run(source, counted=False)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    template = KernelTemplate(shell=shell, tampering=TamperCheck(shell), isolate=isolate)
    gc.collect()
    gc.freeze()
    return template


def main(arguments: list[str]) -> None:
    """Serve. The arguments: the descriptor of the socket, then the modules to import."""
    descriptor, *modules = arguments
    if os.getuid() == 0:
        isolation.drop_root(_UNPRIVILEGED_UID)
    template = prepare(modules, isolate=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(descriptor)) as orders:
        orders.send(b"ready")
        while True:
            _, ends, _, _ = socket.recv_fds(orders, 16, 1)
            if not ends:
                return
            if os.fork() == 0:
                orders.close()
                _open_sandbox(socket.socket(fileno=ends[0]), template)
            os.close(ends[0])


def _open_sandbox(end: socket.socket, template: KernelTemplate) -> NoReturn:
    """In a fork: report the process ID, so that the engine can set a cgroup; then isolate."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    isolation.die_with_parent()
    end.sendall(b"\0")
    if not end.recv(1):
        os._exit(0)
    isolation.enter_namespaces()
    pid = os.fork()
    if pid == 0:
        isolation.die_with_parent()
        serve(end, template, isolation.set_up_files)
    end.close()
    os.waitpid(pid, 0)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
