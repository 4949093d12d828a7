"""Isolate the installation's networks with one nftables table, which is replaced as a whole.

A container can reach the hub and the service at their address, the internet if its network allows
it, and nothing else: no other port of its host, no other container, no cloud metadata service, and
no network that the site blocks. The members of a gang can reach each other, on a bridge of their
own. Across nodes they have an overlay network, which no packet of another container enters: port
4789, at which a host takes packets for overlay networks of a swarm without asking who sends them,
is closed to containers. A container of the base image in the host's network writes the
table, so that this works for an engine on another machine and for a service that is not root.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import dataclass, field
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.records.json_value import Json
from ..engine.client import VXLAN_PORT, DockerClient
from .networks import GANG_INSIDE, GANG_OUTSIDE, INSIDE, MOST_GANGS, OUTSIDE
from .template import KIND, LABEL, SESSION_PORT

_OPEN: Final = (OUTSIDE, GANG_OUTSIDE)
_CLOSED: Final = (INSIDE, GANG_INSIDE)
METADATA: Final = "169.254.0.0/16"
_SECONDS: Final = 20.0
_SCRIPT: Final = (
    'PATH=$PATH:/usr/sbin; nft "$1" && { nft list table inet "$2" 2>/dev/null || true; }'
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FirewallRules:
    """The parameters of the rules.

    Attributes:
        address: the address of the hub and the service; ``ports`` are their ports.
        blocked: networks that no container may reach.
        guest: this is not the hub's machine; the hub connects to its sessions from ``address``.
    """

    installation: str
    address: str
    ports: tuple[int, ...]
    blocked: tuple[str, ...] = ()
    guest: bool = False

    @property
    def table(self) -> str:
        return f"carrel_{self.installation}"


def ruleset(rules: FirewallRules) -> str:
    """Return the input of ``nft``, which replaces the table in one transaction."""
    table = f"inet {rules.table}"
    bridges = [f'"{kind}{rules.installation}*"' for kind in (*_OPEN, *_CLOSED)]
    ours = f"{{ {', '.join(bridges)} }}"
    closed = ", ".join(f'"{kind}{rules.installation}*"' for kind in _CLOSED)
    ports = ", ".join(map(str, sorted(set(rules.ports))))
    service = f"ip daddr {rules.address} tcp dport {{ {ports} }} accept"
    blocked = [METADATA, *rules.blocked]
    # The hub's proxy connects to this machine's address, which forwards to the session.
    proxy = f"ip saddr {rules.address} tcp dport {SESSION_PORT} ct status dnat accept"
    any_bridge = ", ".join(f'"{name}*"' for name in (*_OPEN, *_CLOSED, "docker", "br-"))
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
        f"    udp dport {VXLAN_PORT} drop",
        f"    iifname . oifname {{ {_within_gangs(rules.installation)} }} accept",
        f"    oifname {{ {any_bridge} }} drop",
        *(f"    {_family(network)} daddr {network} drop" for network in blocked),
        f"    iifname {{ {closed} }} drop",
        "  }",
        "  chain to_containers {",
        "    ct state established,related accept",
        *([f"    {proxy}"] if rules.guest else []),
        "    drop",
        "  }",
        "}",
    ]
    return "\n".join(lines)


def _within_gangs(installation: str) -> str:
    """Return the bridges of gangs, each as way in and out of a packet between two members."""
    names = (
        f'"{kind}{installation}-{number:04}"'
        for kind in (GANG_OUTSIDE, GANG_INSIDE)
        for number in range(1, MOST_GANGS + 1)
    )
    return ", ".join(f"{name} . {name}" for name in names)


def _family(network: str) -> str:
    return "ip6" if ":" in network else "ip"


@dataclass(slots=True, kw_only=True)
class Firewall:
    """Sets the rules on an engine's host, and checks that they are unchanged."""

    engine: DockerClient
    rules: FirewallRules
    _applied: str = ""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def is_set(self) -> bool:
        """Whether the rules are set, as far as this process knows."""
        return bool(self._applied)

    def apply(self, image: str) -> None:
        """Set all rules in one transaction, from a container of this image.

        Raises:
            BackendFailed: the rules could not be set; no container may start.
        """
        with self._lock:
            self._applied = ""
            self._applied = _fingerprint(self._nft(image, ruleset(self.rules)))
            if not self._applied:
                raise self._not_set("the table is empty afterwards")

    def is_unchanged(self, image: str) -> bool:
        """Whether the table still has the rules that were written."""
        with self._lock:
            if not self._applied:
                return False
            try:
                return _fingerprint(self._nft(image, "")) == self._applied
            except BackendFailed:
                return False

    def remove(self, image: str) -> None:
        table = f"inet {self.rules.table}"
        with self._lock:
            self._applied = ""
            self._nft(image, f"table {table}\ndelete table {table}")

    def _nft(self, image: str, text: str) -> str:
        """Run nft, and return the table afterwards."""
        name = f"carrel-{self.rules.installation}-guard"
        status, output = self.engine.run_once(name, body(self.rules, image, text), seconds=_SECONDS)
        if status is None:
            raise Unavailable(f"The Docker engine on {self.engine.node} is slow.")
        if status:
            last = output.strip().splitlines()[-1:] or [f"exit status {status}"]
            raise self._not_set(last[0])
        return output

    def _not_set(self, why: str) -> BackendFailed:
        return BackendFailed(
            f"The firewall rules of containers could not be set on {self.engine.node}: {why}",
            accepted="The kernel there needs nftables; `carrel doctor` checks it.",
        )


def body(rules: FirewallRules, image: str, text: str) -> dict[str, Json]:
    """Return the body of a container of the service in the host's network; runs no user code."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["/bin/sh", "-c", _SCRIPT, "sh", text, rules.table],
        "User": "0:0",
        "Labels": {LABEL: rules.installation, KIND: "guard"},
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


def _fingerprint(output: str) -> str:
    return hashlib.sha256(output.encode()).hexdigest() if output.strip() else ""
