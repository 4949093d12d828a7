"""Run the checks of ``carrel doctor`` that need a container on the node."""

from __future__ import annotations

import json
import secrets
import socket
import time
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....hub.errors import BackendFailed
from ....hub.files.private_file import write_private
from ....hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from ....hub.records.diagnostics import Finding, Severity
from ....hub.records.json_value import Json
from ..containers import firewall
from ..containers.template import KIND, LABEL
from ..engine.client import DockerClient
from ..nodes.node import firewall_rules
from .engine_info import FindingFactory

_SHARED: Final = ("homes", "outputs")
_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.2
# Ephemeral ports, from which Docker takes the published ports of sessions.
_FROM, _TO = 32768, 60999
_PROBE: Final = """
import json, socket, sys
here, ports, there, port = json.loads(sys.argv[1])
for hub_port in ports:
    try:
        socket.create_connection((here, hub_port), timeout=3).close()
    except OSError as error:
        print(f"Port {hub_port} of {here} is not reachable: {error}.")
print("tried", flush=True)
with socket.create_server((there, port)) as server:
    server.settimeout(5)
    try:
        server.accept()
    except TimeoutError:
        pass
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Trials:
    """Runs checks on one node, in containers of this image."""

    engine: DockerClient
    host: DockerHost
    settings: BackendSettings
    options: DockerOptions
    image: str
    finding: FindingFactory

    def firewall(self) -> Finding:
        """Check whether the rules can be set; nft validates them without setting them."""
        rules = firewall_rules(self.settings.installation, self.options, self.host)
        body = {
            **firewall.body(rules, self.image, ""),
            "Cmd": ["/usr/sbin/nft", "--check", firewall.ruleset(rules)],
        }
        try:
            status, output = self._run(body)
        except BackendFailed as error:
            return self.finding("firewall", Severity.MISSING, error.message, error.accepted)
        if status == 0:
            what = "The firewall rules of containers can be set (nftables)."
            return self.finding("firewall", Severity.FINE, what)
        first = output.strip().splitlines()[:1] or ["nft printed nothing"]
        return self.finding(
            "firewall",
            Severity.MISSING,
            f"The firewall rules of containers cannot be set: {first[0]}. No container can start.",
            "Load the kernel modules of nftables: modprobe nf_tables nft_ct.",
        )

    def shared_folders(self) -> Finding:
        """Check that a file written on this machine exists on the node, at the same path."""
        state, token = self.settings.state, secrets.token_hex(16)
        probes = [state / name / f".probe-{token[:8]}" for name in _SHARED]
        try:
            for probe in probes:
                probe.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_private(probe, token)
                probe.chmod(0o644)
            missing = [probe.parent for probe in probes if token not in self._read(probe)]
        finally:
            for probe in probes:
                probe.unlink(missing_ok=True)
        if not missing:
            what = f"Homes and outputs in {state} are shared with this machine."
            return self.finding("shared folders", Severity.FINE, what)
        return self.finding(
            "shared folders",
            Severity.MISSING,
            f"Files written here are missing there, in {' and '.join(map(str, missing))}.",
            f"Export {state} with no_root_squash, and mount it there at the same path (NFS).",
        )

    def connections(self) -> Iterator[Finding]:
        """Check the connections to the hub and the service, and from here to sessions there."""
        here, there = self.options.address, self.host.address
        port = _FROM + secrets.randbelow(_TO - _FROM)
        with ExitStack() as stack:
            ports = [_listening(stack, here, port) for port in self._ports()]
            pool = stack.enter_context(ThreadPoolExecutor(1))
            probe = pool.submit(self._run, self._probe(here, ports, there, port))
            answers = _answers(there, port, probe)
            try:
                _, output = probe.result()
            except BackendFailed as error:
                output = f"{error.message}\n"
        errors, tried, rest = output.partition("tried\n")
        both = " and ".join(map(str, ports))
        reached = tried and not errors
        yield self.finding(
            "way to the hub",
            Severity.FINE if reached else Severity.MISSING,
            f"The hub and the service are reachable at {here}, ports {both}."
            if reached
            else " ".join(errors.split()),
            f"Allow {there} to connect to TCP ports {both} of this machine.",
        )
        yield self.finding(
            "way to sessions",
            Severity.FINE if answers else Severity.MISSING,
            f"Sessions there are reachable at {there}."
            if answers
            else f"Sessions there are not reachable at {there}. {rest.strip()[-200:]}",
            f"Is {there} its address? Allow {here} to connect to TCP ports {_FROM} to {_TO} there.",
        )

    def _ports(self) -> Sequence[int]:
        """Return the ports of the hub and the service; 0 (any port) before they are chosen."""
        return self.options.hub_port, self.options.service_port

    def _probe(self, here: str, ports: Sequence[int], there: str, port: int) -> dict[str, Json]:
        arguments = json.dumps([here, ports, there, port])
        return self._body(["python", "-P", "-c", _PROBE, arguments], network="host")

    def _read(self, path: Path) -> str:
        mount: Json = {"Type": "bind", "Source": str(path), "Target": "/probe", "ReadOnly": True}
        try:
            _, output = self._run(self._body(["cat", "/probe"], mounts=[mount]))
        except BackendFailed:
            return ""  # the engine reports that the file does not exist
        return output

    def _body(
        self, command: Sequence[str], *, network: str = "none", mounts: Sequence[Json] = ()
    ) -> dict[str, Json]:
        return {
            "Image": self.image,
            "Entrypoint": [],
            "Cmd": list(command),
            "Labels": {LABEL: self.settings.installation, KIND: "probe"},
            "HostConfig": {
                "NetworkMode": network,
                "CapDrop": ["ALL"],
                "SecurityOpt": ["no-new-privileges:true"],
                "ReadonlyRootfs": True,
                "Mounts": list(mounts),
            },
        }

    def _run(self, body: Mapping[str, Json]) -> tuple[int | None, str]:
        name = f"carrel-{self.settings.installation}-probe-{secrets.token_hex(4)}"
        return self.engine.run_once(name, body, seconds=_SECONDS)


def _listening(stack: ExitStack, address: str, port: int) -> int:
    """Listen on the port, unless a running Carrel does; return the port."""
    with suppress(OSError):
        server = stack.enter_context(socket.create_server((address, port)))
        return int(server.getsockname()[1])
    return port


def _answers(address: str, port: int, probe: Future[tuple[int | None, str]]) -> bool:
    """Whether the address accepts a connection before the probe ends."""
    while not probe.done():
        with suppress(OSError):
            socket.create_connection((address, port), timeout=1).close()
            return True
        time.sleep(_POLL_SECONDS)
    return False
