"""What only a container on the machine can find out: the doctor starts one, and takes it away."""

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
from ..containers import firewall as containers_firewall
from ..containers.template import KIND, LABEL
from ..engine.client import DockerClient
from ..nodes.node import wall_of
from .engine_info import FindingFactory

_SHARED: Final = ("homes", "outputs")
_SECONDS: Final = 30.0
_ASK_SECONDS: Final = 0.2
# From these machines give away ports for outgoing connections, and Docker those of sessions.
_FROM, _TO = 32768, 60999
_PROBE: Final = """
import json, socket, sys
here, ports, there, port = json.loads(sys.argv[1])
for each in ports:
    try:
        socket.create_connection((here, each), timeout=3).close()
    except OSError as error:
        print(f"Port {each} of {here} is not reached: {error}.")
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
    """On one node, in containers of this image."""

    engine: DockerClient
    host: DockerHost
    settings: BackendSettings
    options: DockerOptions
    image: str
    found: FindingFactory

    def firewall(self) -> Finding:
        """Whether the rules could be set: they are checked by the kernel, and not set."""
        wall = wall_of(self.settings.installation, self.options, self.host)
        body = {
            **containers_firewall.body(wall, self.image, ""),
            "Cmd": ["/usr/sbin/nft", "--check", containers_firewall.rules(wall)],
        }
        try:
            status, said = self._run(body)
        except BackendFailed as error:
            return self.found("firewall", Severity.MISSING, error.message, error.accepted)
        if status == 0:
            what = "Rules that keep containers apart can be set (nftables)."
            return self.found("firewall", Severity.FINE, what)
        first = said.strip().splitlines()[:1] or ["it said nothing"]
        return self.found(
            "firewall",
            Severity.MISSING,
            f"Rules that keep containers apart cannot be set: {first[0]}. Nothing starts then.",
            "Load the kernel's nf_tables: modprobe nf_tables nft_ct.",
        )

    def shared_folders(self) -> Finding:
        """A file that is written here has to be there, at the same path."""
        state, token = self.settings.state, secrets.token_hex(16)
        probes = [state / name / f".probe-{token[:8]}" for name in _SHARED]
        try:
            for probe in probes:
                probe.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
                write_private(probe, token)
                probe.chmod(0o644)
            lacking = [probe.parent for probe in probes if token not in self._read(probe)]
        finally:
            for probe in probes:
                probe.unlink(missing_ok=True)
        if not lacking:
            what = f"Homes and outputs in {state} are shared with this machine."
            return self.found("shared folders", Severity.FINE, what)
        return self.found(
            "shared folders",
            Severity.MISSING,
            f"What is written here is not there, in {' and '.join(map(str, lacking))}.",
            f"Export {state} with no_root_squash, and mount it there at the same path (NFS).",
        )

    def ways(self) -> Iterator[Finding]:
        """From there to the hub and the service, and from here to what listens there."""
        here, there = self.options.address, self.host.address
        port = _FROM + secrets.randbelow(_TO - _FROM)
        with ExitStack() as stack:
            ports = [_listening(stack, here, each) for each in self._ports()]
            pool = stack.enter_context(ThreadPoolExecutor(1))
            told = pool.submit(self._run, self._probe(here, ports, there, port))
            answers = _answers(there, port, told)
            try:
                _, said = told.result()
            except BackendFailed as error:
                said = f"{error.message}\n"
        lost, tried, more = said.partition("tried\n")
        both = " and ".join(map(str, ports))
        reached = tried and not lost
        yield self.found(
            "way to the hub",
            Severity.FINE if reached else Severity.MISSING,
            f"The hub and the service are reached at {here}, ports {both}."
            if reached
            else " ".join(lost.split()),
            f"Let {there} in here to TCP ports {both}.",
        )
        yield self.found(
            "way to sessions",
            Severity.FINE if answers else Severity.MISSING,
            f"What listens there on {there} is reached from here."
            if answers
            else f"What listens there on {there} is not reached from here. {more.strip()[-200:]}",
            f"Is {there} its address? Let {here} in there to TCP ports {_FROM} to {_TO}.",
        )

    def _ports(self) -> Sequence[int]:
        """Of the hub and the service; any before they are chosen."""
        return self.options.hub_port, self.options.service_port

    def _probe(self, here: str, ports: Sequence[int], there: str, port: int) -> dict[str, Json]:
        told = json.dumps([here, ports, there, port])
        return self._body(["python", "-c", _PROBE, told], network="host")

    def _read(self, path: Path) -> str:
        mount: Json = {"Type": "bind", "Source": str(path), "Target": "/probe", "ReadOnly": True}
        try:
            _, said = self._run(self._body(["cat", "/probe"], mounts=[mount]))
        except BackendFailed:
            return ""  # the engine says that there is no such file
        return said

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
    """Somebody listens there then: we, or the Carrel that runs."""
    with suppress(OSError):
        server = stack.enter_context(socket.create_server((address, port)))
        return int(server.getsockname()[1])
    return port


def _answers(address: str, port: int, told: Future[tuple[int | None, str]]) -> bool:
    """Whether it takes a connection before the one who listens has gone."""
    while not told.done():
        with suppress(OSError):
            socket.create_connection((address, port), timeout=1).close()
            return True
        time.sleep(_ASK_SECONDS)
    return False
