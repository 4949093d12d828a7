"""Attacks of submissions: small programs that print ESCAPED when they succeed.

Each gets a mapping ``at`` with what it needs to know. Without a sandbox each one succeeds.
"""

from __future__ import annotations

from dataclasses import dataclass

SUCCESS = "ESCAPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class Attack:
    """``source`` is Python; an exception, or silence, is failure.

    Attributes:
        by_root: without a sandbox it succeeds for root alone.
    """

    name: str
    source: str
    by_root: bool = False


ATTACKS = (
    Attack(
        name="read a file of the host, such as the gradebook or another submission",
        source='print(open(at["secret"]).read() and "ESCAPED")',
    ),
    Attack(
        name="look through the folders of the host",
        source="""
import os
for folder in at["folders"]:
    if os.path.isdir(folder) and os.listdir(folder):
        print("ESCAPED")
""",
    ),
    Attack(
        name="read what Carrel is made of, such as the solutions of its sample course",
        source="""
import os, sys
sys.path.append(at["checkout"])
import carrel.courses.sample
for _, _, names in os.walk(list(carrel.courses.sample.__path__)[0]):
    if any(name.endswith(".ipynb") for name in names):
        print("ESCAPED")
""",
    ),
    Attack(
        name="steal a token from the environment",
        source='import os\nprint(os.environ["CARREL_TOKEN"] and "ESCAPED")',
    ),
    Attack(
        name="steal a token from the environment of another process",
        source="""
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        words = open(f"/proc/{pid}/environ", "rb").read()
    except OSError:
        continue
    if b"CARREL_TOKEN=" in words:
        print("ESCAPED")
        break
""",
    ),
    Attack(
        name="signal a process of the host",
        source='import os\nos.kill(at["pid"], 0)\nprint("ESCAPED")',
    ),
    Attack(
        name="kill the process that started it",
        source="""
import os, signal, time
parent = os.getppid()
os.kill(parent, signal.SIGKILL)
for _ in range(50):
    if os.getppid() != parent:
        print("ESCAPED")
        break
    time.sleep(0.02)
""",
    ),
    Attack(
        name="look into the process that started it",
        source='import os\nopen(f"/proc/{os.getppid()}/mem", "rb").close()\nprint("ESCAPED")',
    ),
    Attack(
        name="trace another process",
        source="""
import ctypes, os, signal, time
pid = os.fork()
if pid == 0:
    time.sleep(5)
    os._exit(0)
if ctypes.CDLL(None).ptrace(16, pid, None, None) == 0:
    print("ESCAPED")
os.kill(pid, signal.SIGKILL)
""",
    ),
    Attack(
        name="connect to a port of this machine, such as the service's",
        source="""
import socket
socket.create_connection(("127.0.0.1", at["port"]), timeout=3).close()
print("ESCAPED")
""",
    ),
    Attack(
        name="send something out",
        source="""
import socket
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect((at["outside"], 53))
print("ESCAPED")
""",
    ),
    Attack(
        name="talk to the Linux kernel by a socket",
        source="""
import socket
socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close()
print("ESCAPED")
""",
    ),
    Attack(
        name="connect to an abstract socket",
        source="""
import socket
socket.socket(socket.AF_UNIX).connect("\\0" + at["abstract"])
print("ESCAPED")
""",
    ),
    Attack(
        name="connect to a socket by its path",
        source="""
import socket
socket.socket(socket.AF_UNIX).connect(at["socket"])
print("ESCAPED")
""",
    ),
    Attack(
        name="make a user namespace",
        source="""
import ctypes
if ctypes.CDLL(None).unshare(0x10000000) == 0:
    print("ESCAPED")
""",
    ),
    Attack(
        name="make a user namespace by a call that no filter sees into",
        source="""
import ctypes, os, struct
arguments = struct.pack("11Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0, 0, 0, 0)
pid = ctypes.CDLL(None).syscall(435, arguments, len(arguments))
if pid == 0:
    os._exit(0)
if pid > 0:
    os.waitpid(pid, 0)
    print("ESCAPED")
""",
    ),
    Attack(
        name="mount a file system",
        by_root=True,
        source="""
import ctypes, tempfile
place = tempfile.mkdtemp()
if ctypes.CDLL(None).mount(b"none", place.encode(), b"tmpfs", 0, None) == 0:
    print("ESCAPED")
    ctypes.CDLL(None).umount(place.encode())
""",
    ),
    Attack(
        name="become root",
        by_root=True,
        source='import os\nos.setresuid(0, 0, 0)\nprint("ESCAPED")',
    ),
    Attack(
        name="gain privileges by a program of root",
        source="""
lines = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
if lines["NoNewPrivs"].strip() == "0" or int(lines["CapBnd"], 16):
    print("ESCAPED")
""",
    ),
    Attack(
        name="change a setting of the kernel",
        by_root=True,
        source="""
path = "/proc/sys/vm/swappiness"
value = open(path).read()
open(path, "w").write(value)
print("ESCAPED")
""",
    ),
    Attack(
        name="change an installed package",
        source="""
import os, sys
path = os.path.join(sys.prefix, "escaped")
open(path, "w").close()
os.unlink(path)
print("ESCAPED")
""",
    ),
    Attack(
        name="take memory without end",
        source="""
held = bytearray(500 << 20)
held[::4096] = held[::4096]
print("ESCAPED")
""",
    ),
    Attack(
        name="start processes without end",
        source="""
import os, signal, time
children = []
try:
    while len(children) < 100:
        pid = os.fork()
        if pid == 0:
            os.close(1), os.close(2)
            time.sleep(20)
            os._exit(0)
        children.append(pid)
    print("ESCAPED")
finally:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
""",
    ),
    Attack(
        name="fill the disk",
        source="""
import os
size, paths = 0, []
for folder in (*at["folders"], ".", "/", "/tmp", "/var/tmp", "/run", "/dev/shm", "/home/student"):
    path = os.path.join(folder, f"fill-{os.getpid()}")
    try:
        with open(path, "wb") as file:
            paths.append(path)
            for _ in range(30):
                size += file.write(bytes(1 << 20))
    except OSError:
        pass
if size > 70 << 20:
    print("ESCAPED")
for path in paths:
    os.unlink(path)
""",
    ),
)
