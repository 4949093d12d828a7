"""Escape attempts inside a container: small programs that print ESCAPED when they succeed.

Each gets a mapping ``at`` with the addresses and ports that it needs (``surroundings``).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

SUCCESS = "ESCAPED"


class Control(StrEnum):
    """Where the same attempt succeeds."""

    OPEN = "open"
    """A container without the hardening: as root, privileged, in the host's own namespaces."""
    BESIDE = "beside"
    """An ordinary container on the other person's own network."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """``source`` is Python; an exception, or silence, is failure."""

    name: str
    source: str
    control: Control = Control.OPEN


def _connects(address: str) -> str:
    return f"""
import socket
socket.create_connection({address}, timeout=3).close()
print("ESCAPED")
"""


ATTEMPTS = (
    Attempt(
        name="mount a file system",
        source="""
import ctypes, os, tempfile
place = tempfile.mkdtemp()
if ctypes.CDLL(None, use_errno=True).mount(b"none", place.encode(), b"tmpfs", 0, None) == 0:
    print("ESCAPED")
    ctypes.CDLL(None).umount(place.encode())
""",
    ),
    Attempt(
        name="open a device of the host",
        source="""
import os
path = "/tmp/device"
mode, major, minor = at["device"]
os.mknod(path, mode, os.makedev(major, minor))
os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
print("ESCAPED")
""",
    ),
    Attempt(
        name="open a raw socket",
        source="""
import socket
socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).close()
print("ESCAPED")
""",
    ),
    Attempt(
        name="make a user namespace",
        source="""
import ctypes
if ctypes.CDLL(None).unshare(0x10000000) == 0:
    print("ESCAPED")
""",
    ),
    Attempt(
        name="gain privileges by a program of root",
        source="""
lines = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
if lines["NoNewPrivs"].strip() == "0":
    print("ESCAPED")
""",
    ),
    Attempt(
        name="hold a capability",
        source="""
lines = dict(l.split(":", 1) for l in open("/proc/self/status").read().splitlines())
if int(lines["CapEff"], 16) or int(lines["CapBnd"], 16):
    print("ESCAPED")
""",
    ),
    Attempt(
        name="change a program of the image",
        source="""
open("/opt/carrel/escaped", "w").close()
print("ESCAPED")
""",
    ),
    Attempt(
        name="change a setting of the kernel",
        source="""
path = "/proc/sys/vm/swappiness"
value = open(path).read()
open(path, "w").write(value)
print("ESCAPED")
""",
    ),
    Attempt(
        name="see the processes of the host",
        source="""
import os
for pid in filter(str.isdigit, os.listdir("/proc")):
    try:
        name = open(f"/proc/{pid}/comm").read().strip()
    except OSError:
        continue  # it has ended since
    if name == "dockerd":
        print("ESCAPED")
""",
    ),
    Attempt(
        name="talk to the engine by its socket",
        source="""
import socket
for path in ("/var/run/docker.sock", "/run/docker.sock", at["socket"]):
    try:
        talk = socket.socket(socket.AF_UNIX)
        talk.connect(path)
    except OSError:
        continue
    talk.sendall(b"GET /_ping HTTP/1.0\\r\\n\\r\\n")
    if b"200 OK" in talk.recv(4096):
        print("ESCAPED")
""",
    ),
    Attempt(
        name="reach another port of the host, such as the engine's, at the address of the service",
        source=_connects('(at["service"], at["host_port"])'),
    ),
    Attempt(
        name="reach a port of the host at its own address",
        source=_connects('(at["host"], at["host_port"])'),
    ),
    Attempt(
        name="reach what the host keeps to itself, such as the proxy's API",
        source=_connects('("127.0.0.1", at["local_port"])'),
    ),
    Attempt(
        name="reach another person's container by its address",
        source=_connects('(at["neighbour"], 8888)'),
    ),
    Attempt(
        name="find another person's container by its name",
        source="""
import socket
if socket.gethostbyname(at["neighbour_name"]):
    print("ESCAPED")
""",
        control=Control.BESIDE,
    ),
    Attempt(
        name="reach the metadata of a cloud",
        source=_connects('("169.254.169.254", 8888)'),
    ),
    Attempt(
        name="see every device by the variable of the NVIDIA runtime",
        source="""
import os
if os.environ.get("NVIDIA_VISIBLE_DEVICES") == "all":
    print("ESCAPED")
""",
    ),
    Attempt(
        name="start processes without end",
        source="""
import os, signal, time
children = []
try:
    while len(children) < 600:
        pid = os.fork()
        if pid == 0:
            # Processes that are left must not keep the output open.
            os.close(1), os.close(2)
            time.sleep(20)
            os._exit(0)
        children.append(pid)
    print("ESCAPED")
finally:
    for pid in children:
        os.kill(pid, signal.SIGKILL)
""",
        control=Control.BESIDE,
    ),
    Attempt(
        name="take memory without end",
        source="""
held = b"1" * (700 << 20)
print("ESCAPED")
""",
    ),
    Attempt(
        name="fill the disk",
        source="""
import os
for path in ("/tmp/fill", "/var/tmp/fill", "/run/fill", "/dev/shm/fill"):
    try:
        with open(path, "wb") as file:
            for _ in range(100):
                file.write(bytes(1 << 20))
        print("ESCAPED")
    except OSError:
        pass
    finally:
        if os.path.exists(path):
            os.unlink(path)
""",
    ),
)
