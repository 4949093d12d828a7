"""Let a machine join or leave the pool while Carrel runs.

The machines are tables of carrel.toml, which JupyterHub and the service read when they start. Both
are restarted after a change: sessions and jobs survive that, and no other process has to know that
machines may change. Only accounts that may write the state folder can add a machine, because a
Docker engine gives root on it.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from ..config.node_tables import with_node, without_node
from ..config.settings import EngineKind, Settings
from ..config.site import LOCAL_NODE, NodeTable, SiteFile
from ..config.state_folder import StateFolder
from ..errors import BackendFailed, Conflict, NotFound, Refused, Unavailable
from ..files.private_file import rewrite
from ..interfaces.store import Store
from ..records.audit import AuditAction, AuditEntry
from ..records.diagnostics import Finding, Severity
from ..records.requests import RequestFilter
from ..scheduling.model.snapshot import MarkKind
from ..scheduling.model.states import HOLDS_DEVICES
from . import lock
from .processes import ProcessId

_READERS: Final = ("service", "hub")
"""The processes that read carrel.toml, in the order in which they are restarted."""
_END_SECONDS: Final = 30.0
_POLL_SECONDS: Final = 0.1
_ALL: Final = 100_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Nodes:
    """The machines of an installation.

    Attributes:
        checks: runs the checks of ``carrel doctor`` on the engines of a site file.
        clear: removes Carrel's networks and firewall rules from a machine.
        who: the author of changes, for the audit log.
    """

    state: StateFolder
    store: Store
    checks: Callable[[SiteFile], Sequence[Finding]]
    clear: Callable[[str], None]
    who: str

    def add(self, node: NodeTable, *, dry_run: bool = False) -> tuple[str, ...]:
        """Check a machine and add it to the pool; return what that means, in sentences.

        Raises:
            Conflict: the engine has one node, or Carrel does not listen on its own address yet.
            InvalidInput: the name is taken, or a value is not valid.
            Refused: the machine lacks something; the message says what.
        """
        settings = Settings.load(self.state)
        if settings.engine is EngineKind.SLURM:
            raise Conflict(
                "The nodes of a cluster belong to Slurm.",
                accepted="Add it to slurm.conf, and try it: carrel slurm check. It joins the pool "
                "by itself.",
            )
        if settings.engine is not EngineKind.DOCKER:
            raise Conflict(
                "The local engine has one node, this machine.",
                accepted=f"Use containers: carrel up --engine {EngineKind.DOCKER}.",
            )
        site = SiteFile.parse(with_node(self._text(), node), self.state.site_file)
        if settings.internal_ip != site.docker.address:
            raise Conflict(
                f"Carrel does not listen on {site.docker.address}, the address of this machine in "
                "carrel.toml.",
                accepted="Restart it once: carrel down, then carrel up.",
            )
        found = [each for each in self.checks(site) if each.subject.startswith(f"{node.name}: ")]
        missing = [each for each in found if each.verdict is Severity.MISSING]
        if missing:
            raise Refused(
                f"{node.name} cannot join. " + " ".join(each.what for each in missing),
                accepted=" ".join(each.mend for each in missing if each.mend),
            )
        warnings = [each.what for each in found if each.verdict is Severity.WARNING]
        if not dry_run:
            # The checks took a while, in which the file may have changed.
            text = with_node(self._text(), node)
            SiteFile.parse(text, self.state.site_file)
            self._write(text)
            self.store.add_change(self._change(AuditAction.NODE_ADD, node.name))
            self._restart()
        return (
            *warnings,
            f"{node.name} joins the pool; its devices are listed within a minute.",
            "Running sessions and jobs continue; pages are unavailable for some seconds.",
        )

    def remove(self, name: str, *, dry_run: bool = False) -> tuple[str, ...]:
        """Remove a drained machine on which nothing runs; return what that means.

        Raises:
            NotFound: there is no such machine.
            Conflict: it is this machine, is not drained, or something runs there.
            InvalidInput: its table cannot be removed from carrel.toml.
        """
        if name == LOCAL_NODE:
            raise Conflict("This machine cannot be removed.", accepted=f"carrel node drain {name}")
        text = self._text()
        listed = {node.name for node in SiteFile.parse(text, self.state.site_file).nodes}
        if name not in {*listed, *self.store.nodes()}:
            known = sorted({*listed, *self.store.nodes()} - {LOCAL_NODE})
            raise NotFound(
                f"There is no node {name}.", accepted=f"Nodes: {', '.join(known) or 'none'}."
            )
        shorter = without_node(text, name) if name in listed else text
        self._check_idle(name, listed=name in listed)
        said = (
            f"{name} leaves the pool, with its devices. Past use of them stays in reports.",
            "Sessions and jobs on other machines continue; pages are unavailable for some seconds.",
        )
        if dry_run:
            return said
        if shorter != text:
            self._write(shorter)
        # Also where an editor has changed the file: a service that still has the machine would list
        # its devices again, without the drain.
        self._restart()
        left = self._clear(name) if shorter != text else ""
        change = self._change(AuditAction.NODE_REMOVE, name)
        if name in self.store.nodes():
            self.store.remove_node(name, change=change)
        else:
            self.store.add_change(change)
        return (*said, left) if left else said

    def _clear(self, name: str) -> str:
        """Clear the machine; return what stays there and why, empty if nothing does."""
        try:
            self.clear(name)
        except (BackendFailed, Unavailable) as error:
            return f"Networks and firewall rules of Carrel stay on {name}: {error.message}"
        return ""

    def _check_idle(self, name: str, *, listed: bool) -> None:
        held = self.store.requests(RequestFilter(states=HOLDS_DEVICES, limit=_ALL))
        there = sum(each.lease is not None and each.lease.node == name for each in held)
        accepted = f"carrel node drain {name} --until 2h stops what is left after two hours."
        if there:
            what = "1 session or job runs" if there == 1 else f"{there} sessions and jobs run"
            raise Conflict(f"{what} on {name}.", accepted=accepted)
        drained = any(
            mark.target == name and mark.kind is MarkKind.DRAIN for mark in self.store.marks()
        )
        if listed and name in self.store.nodes() and not drained:
            # Otherwise something could start there meanwhile.
            raise Conflict(f"{name} is not drained.", accepted=f"carrel node drain {name}")

    def _text(self) -> str:
        try:
            return self.state.site_file.read_text(encoding="utf-8-sig")
        except FileNotFoundError:
            return ""

    def _write(self, text: str) -> None:
        rewrite(self.state.site_file, text)

    def _change(self, action: AuditAction, name: str) -> AuditEntry:
        return AuditEntry(at=time.time(), who=self.who, action=action, target=name)

    def _restart(self) -> None:
        """End the processes that read carrel.toml; ``carrel up`` starts them again.

        Raises:
            Unavailable: one of them does not end.
        """
        if lock.holder(self.state) is None:
            return
        for name in _READERS:
            process = ProcessId.load(self.state.run / f"{name}.json")
            if process is None:
                continue
            process.send(signal.SIGTERM)
            deadline = time.monotonic() + _END_SECONDS
            while process.alive:
                if time.monotonic() > deadline:
                    raise Unavailable(f"The process {name} does not end: restart Carrel.")
                time.sleep(_POLL_SECONDS)
