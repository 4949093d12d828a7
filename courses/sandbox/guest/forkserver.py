"""Imports once what notebooks need, and forks a cage for each submission that comes.

It runs in the bubblewrap of a whole grading run and never executes a line of a student. The
outside hands it one end of a socket for each cage; it ends when the outside hangs up.
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

NOBODY: Final = 65534
_FIRST_TIMES: Final = ("None", "0", "1 / 0", "%precision", "def f(:", "display(0)")
"""What takes long once only: to show a value, an error and its traceback, to find a magic."""


def prepare(modules: Iterable[str], *, walled: bool) -> KernelTemplate:
    """Whatever takes time and is the same for all."""
    for name in modules:
        # Whatever it raises it raises once more where a notebook imports it, and is told there.
        with contextlib.suppress(Exception, SystemExit):
            importlib.import_module(name)
    shell = make_shell()
    for source in _FIRST_TIMES:
        shell.run(source, counted=False)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        vars(sys).pop(name, None)
    start = KernelTemplate(shell=shell, prints=TamperCheck(shell), walled=walled)
    gc.collect()
    gc.freeze()
    return start


def main(arguments: list[str]) -> None:
    """The descriptor on which orders come, then the modules."""
    line, *modules = arguments
    if os.getuid() == 0:
        isolation.become_nobody(NOBODY)
    start = prepare(modules, walled=True)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    with socket.socket(fileno=int(line)) as orders:
        orders.send(b"ready")
        while True:
            _, ends, _, _ = socket.recv_fds(orders, 16, 1)
            if not ends:
                return
            if os.fork() == 0:
                orders.close()
                _open(socket.socket(fileno=ends[0]), start)
            os.close(ends[0])


def _open(end: socket.socket, start: KernelTemplate) -> NoReturn:
    """In a fork: show which process this is, so that it can be put into a cgroup; then leave."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    isolation.die_with_parent()
    end.sendall(b"\0")
    if not end.recv(1):
        os._exit(0)
    isolation.leave_everything()
    pid = os.fork()
    if pid == 0:
        isolation.die_with_parent()
        serve(end, start, isolation.furnish)
    end.close()
    os.waitpid(pid, 0)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1:])
