"""The wall around the installation's networks: one nftables table, put in place as a whole.

A container reaches the hub and the service at their one address, whatever lies outside where
its network may, and nothing else: no other port of its host, no other container, no cloud's
metadata, and nothing that the site has blocked. The table is written by a container of the base
image in the host's network, so that it works the same for an engine on another machine and for
a service that is not root.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.records.json_value import Json
from ..engine.client import DockerClient
from .template import KIND, LABEL, SESSION_PORT

METADATA: Final = "169.254.0.0/16"
_SECONDS: Final = 20.0
_SCRIPT: Final = (
    'PATH=$PATH:/usr/sbin; nft "$1" && { nft list table inet "$2" 2>/dev/null || true; }'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirewallRules:
    """What the rules are made from.

    Attributes:
        address: of the hub and the service; ports: theirs.
        blocked: networks that no container reaches.
        guest: another machine than that of the hub, which reaches sessions here from its address.
    """

    installation: str
    address: str
    ports: tuple[int, ...]
    blocked: tuple[str, ...] = ()
    guest: bool = False

    @property
    def table(self) -> str:
        return f"carrel_{self.installation}"


def rules(wall: FirewallRules) -> str:
    """For ``nft``: the old table, if there is one, is replaced in the same step."""
    table = f"inet {wall.table}"
    open_bridges, closed_bridges = f"crl{wall.installation}*", f"crn{wall.installation}*"
    ours = f'{{ "{open_bridges}", "{closed_bridges}" }}'
    ports = ", ".join(map(str, sorted(set(wall.ports))))
    service = f"ip daddr {wall.address} tcp dport {{ {ports} }} accept"
    shut = [METADATA, *wall.blocked]
    # The hub's proxy asks at this machine's own address, which passes it on to the session.
    proxy = f"ip saddr {wall.address} tcp dport {SESSION_PORT} ct status dnat accept"
    lines = [
        f"table {table}",
        f"delete table {table}",
        f"table {table} {{",
        "  chain input {",
        "    type filter hook input priority -10; policy accept;",
        f"    iifname {ours} jump from_containers",
        "  }",
        "  chain from_containers {",
        "    ct state established,related accept",
        f"    {service}",
        "    drop",
        "  }",
        "  chain forward {",
        "    type filter hook forward priority -10; policy accept;",
        f"    iifname {ours} jump to_elsewhere",
        f"    oifname {ours} jump to_containers",
        "  }",
        "  chain to_elsewhere {",
        "    ct state established,related accept",
        f"    {service}",
        '    oifname { "crl*", "crn*", "docker*", "br-*" } drop',
        *(f"    {_family(each)} daddr {each} drop" for each in shut),
        f'    iifname "{closed_bridges}" drop',
        "  }",
        "  chain to_containers {",
        "    ct state established,related accept",
        *([f"    {proxy}"] if wall.guest else []),
        "    drop",
        "  }",
        "}",
    ]
    return "\n".join(lines)


def _family(network: str) -> str:
    return "ip6" if ":" in network else "ip"


@dataclass(slots=True, kw_only=True)
class Firewall:
    """Puts the rules of one engine's host in place, and looks whether they still are."""

    engine: DockerClient
    wall: FirewallRules
    _standing: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def stands(self) -> bool:
        """Whether they were put in place, as far as this process knows."""
        return bool(self._standing)

    def put(self, image: str) -> None:
        """Write the rules, all at once, from a container of this image.

        Raises:
            BackendFailed: they could not be written; nothing may start then.
        """
        with self._lock:
            self._standing = ""
            self._standing = _fingerprint(self._nft(image, rules(self.wall)))
            if not self._standing:
                raise self._not_set("they were not there afterwards")

    def holds(self, image: str) -> bool:
        """Whether the rules are what was written."""
        with self._lock:
            if not self._standing:
                return False
            try:
                return _fingerprint(self._nft(image, "")) == self._standing
            except BackendFailed:
                return False

    def take_away(self, image: str) -> None:
        table = f"inet {self.wall.table}"
        with self._lock:
            self._standing = ""
            self._nft(image, f"table {table}\ndelete table {table}")

    def _nft(self, image: str, text: str) -> str:
        """Carry it out; returns the table as it is then."""
        name = f"carrel-{self.wall.installation}-guard"
        status, said = self.engine.run_once(name, body(self.wall, image, text), seconds=_SECONDS)
        if status is None:
            raise Unavailable(f"The Docker engine on {self.engine.node} is slow.")
        if status:
            last = said.strip().splitlines()[-1:] or [f"exit status {status}"]
            raise self._not_set(last[0])
        return said

    def _not_set(self, why: str) -> BackendFailed:
        return BackendFailed(
            f"The rules that keep containers apart could not be set on {self.engine.node}: {why}",
            accepted="The kernel there needs nftables; `carrel doctor` looks for it.",
        )


def body(wall: FirewallRules, image: str, text: str) -> dict[str, Json]:
    """A container of the service itself, in the host's network: never anybody's task."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["/bin/sh", "-c", _SCRIPT, "sh", text, wall.table],
        "User": "0:0",
        "Labels": {LABEL: wall.installation, KIND: "guard"},
        "HostConfig": {
            "NetworkMode": "host",
            "UsernsMode": "host",
            "CapDrop": ["ALL"],
            "CapAdd": ["NET_ADMIN"],
            "SecurityOpt": ["no-new-privileges:true"],
            "ReadonlyRootfs": True,
            "LogConfig": {"Type": "json-file", "Config": {"max-size": "1m", "max-file": "1"}},
        },
    }


def _fingerprint(said: str) -> str:
    return hashlib.sha256(said.encode()).hexdigest() if said.strip() else ""
