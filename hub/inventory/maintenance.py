"""Drain and quarantine of devices and nodes by administrators, with warnings to their users.

A mark stays in the store until it is removed, whatever health the device reports.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..errors import Conflict, InvalidInput, NotFound
from ..interfaces.backend import Backend
from ..messages.units import count, device_name
from ..records.audit import AuditAction
from ..records.json_value import Json
from ..records.requests import RequestFilter, RequestRecord
from ..runtime.audit_trail import AuditTrail
from ..runtime.notifier import ChangeNotifier
from ..scheduling.model.snapshot import Device, Health, Mark, MarkKind
from ..scheduling.model.states import HOLDS_DEVICES
from ..schemas.admin import NodeOut
from ..transitions import lifecycle

DRAIN_EVENT = "drain_warning"
"""Event of a running request whose drain has an end date: when it will be stopped, and why."""
_ALL = 100_000


@dataclass(frozen=True, slots=True)
class NodeMaintenance(AuditTrail):
    """Drains and quarantines devices and nodes; every change is audited."""

    notifier: ChangeNotifier
    backend: Backend

    def drain(
        self, target: str, *, why: str, until: float | None, who: str, dry_run: bool = False
    ) -> tuple[str, ...]:
        """Start no new requests on the target; stop running ones at ``until``, if given.

        Raises:
            NotFound: there is no such device or node.
            InvalidInput: the date is past.
        """
        now = self.clock()
        if until is not None and until <= now:
            raise InvalidInput(
                "The date of the drain is in the past.",
                accepted="A future time, or none.",
                field="until",
            )
        self._check_unchanged(AuditAction.DRAIN, target, who)
        name, found = self.named(target), self.running_on(target)
        sentences = (f"Nothing new starts on {name}.", *_what_runs(found, until))
        if dry_run:
            return sentences
        mark = Mark(target=target, kind=MarkKind.DRAIN, since=now, why=why, by=who, until=until)
        after: dict[str, Json] = {} if until is None else {"until": until}
        change = self._change(AuditAction.DRAIN, target, who, why=why, after=after)
        self.store.put_mark(mark, change=change)
        if until is not None:
            warning: Mapping[str, Json] = {"stops_at": until, "why": why}
            warned = [request for request in found if _runs_at(request, until)]
            for request in warned:
                self.store.apply(request.id, lifecycle.record_event, DRAIN_EVENT, warning, now=now)
        self.notifier.notify()
        return sentences

    def undrain(self, target: str, *, who: str) -> tuple[str, ...]:
        """End a drain. Raises NotFound, or Conflict if the target itself is not drained."""
        self._check_unchanged(AuditAction.UNDRAIN, target, who)
        name = self.named(target)
        removed = self.store.remove_mark(
            target, MarkKind.DRAIN, change=self._change(AuditAction.UNDRAIN, target, who)
        )
        if not removed:
            device = self._device(target)
            by_node = device is not None and device.draining
            raise Conflict(
                f"{name} is not drained by itself.",
                accepted=f"Its node is: undrain {device.node}." if device and by_node else "",
            )
        self.notifier.notify()
        return (f"New work may start on {name} again.",)

    def quarantine(self, target: str, *, why: str, who: str) -> tuple[str, ...]:
        """Start no new requests on the device until it is released; running ones continue.

        Raises:
            NotFound: there is no such device.
        """
        mark = Mark(target=target, kind=MarkKind.QUARANTINE, since=self.clock(), why=why, by=who)
        change = self._change(AuditAction.QUARANTINE, target, who, why=why)
        self.store.put_mark(mark, change=change)
        self.notifier.notify()
        return (
            f"Nothing new starts on {self.named(target)} until it is released.",
            *_what_runs(self.running_on(target), None),
        )

    def release(self, target: str, *, who: str) -> tuple[str, ...]:
        """End a quarantine.

        Raises:
            NotFound: there is no such device.
            Conflict: it is not in quarantine, or still reports a fault.
        """
        self._check_unchanged(AuditAction.RELEASE, target, who)
        name, device = self.named(target), self._device(target)
        if device is None or device.quarantine is None:
            raise Conflict(f"{name} is not in quarantine.")
        if device.health in (Health.SICK, Health.GONE) and device.quarantine.fault:
            raise Conflict(
                f"{name} is still {device.health}: {device.why}",
                accepted="Repair or reset it first; Carrel checks it every few seconds.",
            )
        self.store.remove_mark(
            target,
            MarkKind.QUARANTINE,
            change=self._change(
                AuditAction.RELEASE, target, who, before={"why": device.quarantine.why}
            ),
        )
        self.notifier.notify()
        return (f"{name} accepts requests again.",)

    # -- queries --------------------------------------------------------------------------

    def nodes(self) -> list[NodeOut]:
        drains = {m.target: m for m in self.store.marks() if m.kind is MarkKind.DRAIN}
        ready = {state.name: state.ready for state in self.backend.nodes()}
        return [
            NodeOut(
                name=name,
                drained=name in drains,
                drain_until=drains[name].until if name in drains else None,
                why=drains[name].why if name in drains else "",
                ready=ready.get(name, 0),
            )
            for name in self.store.nodes()
        ]

    def named(self, target: str) -> str:
        """Return the display name of a device or node. Raises NotFound."""
        device = self._device(target)
        if device is not None:
            return device_name(device)
        nodes = self.store.nodes()
        if target in nodes:
            return f"the node {target}"
        raise NotFound(
            f"There is no device or node {target[:80]}.",
            accepted=f"Nodes: {', '.join(nodes) or 'none yet'}. `carrel pool` lists the devices.",
        )

    def running_on(self, target: str) -> tuple[RequestRecord, ...]:
        """Return the requests that hold the device or run on the node."""
        held = self.store.requests(RequestFilter(states=HOLDS_DEVICES, limit=_ALL))
        return tuple(
            request
            for request in held
            if request.lease is not None and target in (*request.lease.devices, request.lease.node)
        )

    def _device(self, target: str) -> Device | None:
        return next((device for device in self.store.devices() if device.id == target), None)


def _runs_at(request: RequestRecord, at: float) -> bool:
    """Whether its time limit allows it to run until then."""
    return request.lease is not None and request.lease.granted_at + request.seconds >= at


def _what_runs(found: tuple[RequestRecord, ...], until: float | None) -> tuple[str, ...]:
    if not found:
        return ("Nothing runs there.",)
    if until is None:
        continues = "runs on to its own end" if len(found) == 1 else "run on to their own ends"
        return (f"{count(len(found), 'request')} there {continues}.",)
    warned = sum(_runs_at(request, until) for request in found)
    ends = len(found) - warned
    sentences = []
    if warned:
        end = (
            "is warned, and stopped at the date unless it ends before"
            if warned == 1
            else "are warned, and those that are left are stopped at the date"
        )
        sentences.append(f"{count(warned, 'request')} there {end}.")
    if ends:
        end = "reaches its time limit" if ends == 1 else "reach their time limits"
        sentences.append(f"{count(ends, 'request')} there {end} before the date.")
    return tuple(sentences)
