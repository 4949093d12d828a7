"""Isolate processes by Linux system calls (ctypes; no other dependency).

Each call affects the calling process and all its children, and cannot be undone.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

_libc = ctypes.CDLL(None, use_errno=True)

_NEW: Final = (
    0x00020000 | 0x02000000 | 0x04000000 | 0x08000000 | 0x10000000 | 0x20000000 | 0x40000000
)
"""Mounts, cgroup, UTS, IPC, user, PID and network."""
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND = 1, 2, 4, 8, 32, 4096
_REC, _PRIVATE = 16384, 1 << 18
_SET_PDEATHSIG, _SET_DUMPABLE, _SET_SECCOMP, _CAPBSET_DROP = 1, 4, 22, 24
_SET_NO_NEW_PRIVS, _CAP_AMBIENT, _CLEAR_ALL = 38, 47, 4
_CAPABILITIES: Final = 64
_CAPABILITY_V3: Final = 0x20080522
_SIGKILL: Final = 9

INSIDE_UID: Final = 1000
HOME: Final = "/home/student"
_TMP: Final = "/tmp"  # noqa: S108  # of the sandbox alone


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessBounds:
    """Limits of a student's process that the Linux kernel enforces.

    Attributes:
        processes: of its user in its user namespace; 0 where a container limits them.
    """

    memory_bytes: int
    processes: int
    file_bytes: int
    disk_bytes: int
    cpus: float


def _check(result: int, what: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{what}: {os.strerror(number)}")


def mount(source: str, target: str, kind: str, flags: int, options: str = "") -> None:
    _check(
        _libc.mount(
            source.encode(), target.encode(), kind.encode(), ctypes.c_ulong(flags), options.encode()
        ),
        f"mount {target}",
    )


def hide() -> None:
    """Keep processes of the same user from inspecting or tracing this one."""
    _check(_libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0), "prctl")


def show() -> None:
    """Undo ``hide``. Needed after a change of user, to write to its own files in /proc."""
    _check(_libc.prctl(_SET_DUMPABLE, 1, 0, 0, 0), "prctl")


def die_with_parent() -> None:
    _check(_libc.prctl(_SET_PDEATHSIG, _SIGKILL, 0, 0, 0), "prctl")


def drop_root(uid: int) -> None:
    """Mount /proc, then change to an unprivileged user: resource limits do not apply to root.

    Bubblewrap's own /proc could not be mounted again in a sandbox.
    """
    mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    os.setgroups([])
    os.setresgid(uid, uid, uid)
    os.setresuid(uid, uid, uid)
    show()


def enter_namespaces() -> None:
    """Enter new namespaces of every kind, with all capabilities inside them."""
    uid, gid = os.getuid(), os.getgid()
    _check(_libc.unshare(_NEW), "unshare")
    for name, words in (
        ("setgroups", "deny"),
        ("uid_map", f"{INSIDE_UID} {uid} 1"),
        ("gid_map", f"{INSIDE_UID} {gid} 1"),
    ):
        with open(f"/proc/self/{name}", "w") as file:
            file.write(words)


def set_up_files(disk_bytes: int) -> None:
    """As process 1: mount /proc of the sandbox, and one tmpfs for all files."""
    mount("none", "/", "none", _REC | _PRIVATE)
    mount("proc", "/proc", "proc", _NOSUID | _NODEV | _NOEXEC)
    with open("/proc/sys/user/max_user_namespaces", "w") as file:
        file.write("0")
    mount("devpts", "/dev/pts", "devpts", _NOSUID | _NOEXEC, "newinstance,ptmxmode=0666,mode=620")
    kept = [(path, os.open(path, os.O_PATH)) for path in _mounted_below(_TMP)]
    disk = f"size={disk_bytes},nr_inodes={_inodes(disk_bytes)},mode=755"
    mount("tmpfs", HOME, "tmpfs", _NOSUID | _NODEV, disk)
    for name, path in ((".tmp", _TMP), (".shm", "/dev/shm")):  # noqa: S108
        os.mkdir(f"{HOME}/{name}", 0o700)
        mount(f"{HOME}/{name}", path, "none", _BIND)
    for path, number in kept:
        os.makedirs(path, exist_ok=True)
        mount(f"/proc/self/fd/{number}", path, "none", _BIND | _REC)
        os.close(number)


def _mounted_below(path: str) -> list[str]:
    """Mount points below a folder: Carrel itself may be installed there."""
    with open("/proc/self/mountinfo") as file:
        found = [line.split()[4] for line in file]
    return [path for path in found if path.startswith(f"{path}/")]


def _inodes(disk_bytes: int) -> int:
    return max(1024, disk_bytes // 4096)


def close_proc() -> None:
    """Make /proc read-only."""
    mount("none", "/proc", "none", _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)


def give_up_rights() -> None:
    """Drop all capabilities for good."""
    for capability in range(_CAPABILITIES):
        _libc.prctl(_CAPBSET_DROP, capability, 0, 0, 0)
    _libc.prctl(_CAP_AMBIENT, _CLEAR_ALL, 0, 0, 0)
    _check(_libc.prctl(_SET_NO_NEW_PRIVS, 1, 0, 0, 0), "prctl")
    header = struct.pack("Ii", _CAPABILITY_V3, 0)
    _check(_libc.capset(header, bytes(24)), "capset")


def bound(bounds: ProcessBounds) -> None:
    """Set resource limits and CPU affinity of a student's process."""
    limits = {
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: bounds.file_bytes,
        resource.RLIMIT_NOFILE: 256,
        resource.RLIMIT_DATA: bounds.memory_bytes + _data_bytes(),
        resource.RLIMIT_MSGQUEUE: 0,
        resource.RLIMIT_MEMLOCK: 1 << 16,
    }
    if bounds.processes:
        limits[resource.RLIMIT_NPROC] = bounds.processes
    for name, most in limits.items():
        hard = resource.getrlimit(name)[1]
        least = most if hard == resource.RLIM_INFINITY else min(most, hard)
        resource.setrlimit(name, (least, least))
    mine = sorted(os.sched_getaffinity(0))
    wanted = max(1, round(bounds.cpus))
    if wanted < len(mine):
        first = os.getppid() + int.from_bytes(os.urandom(2), "big")
        os.sched_setaffinity(0, {mine[(first + i) % len(mine)] for i in range(wanted)})


def _data_bytes() -> int:
    """Data bytes of the imports, which do not count for the student."""
    with open("/proc/self/status") as file:
        found = next(line for line in file if line.startswith("VmData:"))
    return int(found.split()[1]) * 1024


_DENIED: Final = {
    # ptrace, process_vm_readv, process_vm_writev, mount, umount2, pivot_root, chroot, unshare,
    # setns, swapon, swapoff, reboot, init_module, delete_module, finit_module, kexec_load,
    # kexec_file_load, acct, quotactl, add_key, request_key, keyctl, bpf, perf_event_open,
    # userfaultfd, name_to_handle_at, open_by_handle_at, kcmp, syslog, sched_setaffinity
    "x86_64": (
        0xC000003E,
        (
            *(101, 310, 311, 165, 166, 155, 161, 272, 308, 167, 168, 169, 175, 176, 313, 246),
            *(320, 163, 179, 248, 249, 250, 321, 298, 323, 303, 304, 312, 103, 203),
        ),
    ),
    "aarch64": (
        0xC00000B7,
        (
            *(117, 270, 271, 40, 39, 41, 51, 97, 268, 224, 225, 142, 105, 106, 273, 104),
            *(294, 89, 60, 217, 218, 219, 280, 241, 282, 264, 265, 272, 116, 122),
        ),
    ),
}
_SOCKETS: Final = {"x86_64": (41, 53), "aarch64": (198, 199)}
"""socket and socketpair."""
# io_uring_setup, _enter, _register, open_tree, move_mount, fsopen, fsconfig, fsmount, fspick,
# pidfd_getfd, process_madvise, mount_setattr: of the same number everywhere.
_DENIED_EVERYWHERE: Final = (425, 426, 427, 428, 429, 430, 431, 432, 433, 438, 440, 442)
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_ALLOW: Final = 0x7FFF0000
_NOT_PERMITTED: Final = 0x00050001
_NO_FAMILY: Final = 0x00050061
"""EAFNOSUPPORT: programs take it for a kernel without this kind of socket."""
_AF_UNIX: Final = 1
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
"""Offsets in what a filter sees of a call."""
_X32: Final = 0x40000000


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def deny_calls() -> None:
    """Deny system calls that no exercise needs and that kernel exploits use (seccomp).

    Of sockets only those of AF_UNIX are left: those of other families reach beyond the network
    namespace (AF_VSOCK), or code of the Linux kernel that exploits use (AF_NETLINK, AF_PACKET).
    On a processor whose call numbers are not listed, the other isolation has to do.
    """
    known = _DENIED.get(platform.machine())
    if known is None:
        return
    architecture, numbers = known
    denied = (*numbers, *_DENIED_EVERYWHERE)
    sockets = _SOCKETS[platform.machine()]
    steps: list[tuple[int, int, str, str]] = [
        (_LOAD, _ARCHITECTURE, "", ""),
        (_EQUAL, architecture, "", "denied"),
        (_LOAD, _NUMBER, "", ""),
        (_AT_LEAST, _X32, "denied", ""),
        *((_EQUAL, number, "denied", "") for number in denied),
        *((_EQUAL, number, "socket", "") for number in sockets),
        (_RETURN, _ALLOW, "", ""),
        (_LOAD, _FIRST_ARGUMENT, "", ""),
        (_EQUAL, _AF_UNIX, "", "family"),
        (_RETURN, _ALLOW, "", ""),
        (_RETURN, _NO_FAMILY, "", ""),
        (_RETURN, _NOT_PERMITTED, "", ""),
    ]
    last = len(steps) - 1
    labels = {"socket": last - 4, "family": last - 1, "denied": last}
    compiled = [
        struct.pack("HBBI", code, *(_jump(labels, label, at) for label in (yes, no)), value)
        for at, (code, value, yes, no) in enumerate(steps)
    ]
    program = _Program(len(compiled), b"".join(compiled))
    _check(_libc.prctl(_SET_SECCOMP, 2, ctypes.byref(program), 0, 0), "seccomp")


def _jump(labels: Mapping[str, int], label: str, at: int) -> int:
    """The number of steps to skip from there to a label; without one, none."""
    return labels[label] - at - 1 if label else 0
