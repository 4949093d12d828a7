"""One machine of the pool: its engine, its networks and wall, and what was seen there last."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from ....hub.records.images import Image
from ....hub.records.leases import Handle
from ..containers import session_log
from ..containers.firewall import Firewall, FirewallRules
from ..containers.late_mounts import places_of
from ..containers.networks import Networks
from ..containers.template import KIND, LABEL, WARM, lease_of
from ..engine import images
from ..engine.client import Container, DockerClient, ListedContainer
from ..engine.timed_call import TimedCall

log = logging.getLogger(__name__)

LOOK_SECONDS: Final = 1.0
"""How long the scheduling loop waits for one engine's answer."""
FRESH_SECONDS: Final = 3.0
GUARD_SECONDS: Final = 30.0
_HERE = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A container of a lease; ``about`` is what was found in it when it began or had ended.

    Attributes:
        idle: it has waited for a job and has been given this one's name, and nothing of it.
    """

    id: str
    labels: Mapping[str, str]
    running: bool
    about: Container
    idle: bool = False

    @property
    def handle(self) -> Handle | None:
        return self.about.handle if self.running else None


Survey = Mapping[str, tuple[Seen, ...]]
"""Containers by lease, those that run first."""


class Node:
    """Usable from any thread.

    Attributes:
        here: whether its engine is on this machine.
        places: of containers that wait for jobs.
    """

    def __init__(self, host: DockerHost, settings: BackendSettings, options: DockerOptions) -> None:
        self.name = host.node
        self.here = host.url.startswith(_HERE)
        self.engine = DockerClient(host)
        self.networks = Networks(
            engine=self.engine,
            installation=settings.installation,
            subnets=options.subnets,
            turn=options.hosts.index(host),
            turns=len(options.hosts),
        )
        self.guard = Firewall(
            engine=self.engine, wall=wall_of(settings.installation, options, host)
        )
        self.places = places_of(settings)
        self._wanted = {LABEL: settings.installation}
        self._default = options.image
        slow = f"The Docker engine on {self.name} is slow: it has not answered yet."
        self._asking = TimedCall(self._survey, slow)
        self._guarding = TimedCall(self._see_to_guard, slow)
        self._about: dict[tuple[str, bool], Container] = {}
        self._lock = threading.Lock()
        self._asked_at = self._guarded_at = -1e9
        self._silence = ""
        self._unguarded = f"The rules that keep containers apart are not set on {self.name} yet."

    # -- what runs there ------------------------------------------------------------------

    def survey(self, patience: float = LOOK_SECONDS) -> Survey:
        """What is there now of this installation.

        Raises:
            Unavailable: the engine does not answer, or not in time.
        """
        try:
            found = self._asking.answer(patience)
        except Unavailable as error:
            self._silence = str(error)
            raise
        finally:
            self._asked_at = time.monotonic()
        self._silence = ""
        return found

    def why_not(self) -> str:
        """Why nothing can start there now, as a sentence; empty where it can."""
        if time.monotonic() - self._asked_at > FRESH_SECONDS:
            try:
                self.survey()
            except Unavailable:
                return self._silence
        if not self._silence and time.monotonic() - self._guarded_at > GUARD_SECONDS:
            self.see_to_guard(LOOK_SECONDS)
        return self._silence or self._unguarded

    def _survey(self) -> Survey:
        found: dict[str, list[Seen]] = {}
        listed = [
            each
            for each in self.engine.containers(self._wanted)
            if lease_of(each.name, each.labels)
        ]
        begun = self.places.filled() if any(WARM in each.labels for each in listed) else ()
        for each in sorted(listed, key=lambda container: not container.running):
            warm = each.labels.get(WARM, "")
            idle = bool(warm) and each.running and warm not in begun
            if warm in begun and (each.id, True) not in self._about:
                # Whoever gave it its job may have been killed before it rang.
                self.places.ring(warm)
            about = self._about_it(each)
            if about is not None:
                running = each.running and about.handle is not None and not idle
                seen = Seen(id=each.id, labels=each.labels, running=running, about=about, idle=idle)
                found.setdefault(lease_of(each.name, each.labels), []).append(seen)
        with self._lock:
            there = {(each.id, each.running) for each in listed}
            self._about = {key: self._about[key] for key in there & self._about.keys()}
        return {lease: tuple(several) for lease, several in found.items()}

    def _about_it(self, listed: ListedContainer) -> Container | None:
        """Asked for once while it runs, and once more when it has ended."""
        key = (listed.id, listed.running)
        known = self._about.get(key)
        if known is None:
            known = self.engine.inspect(listed.id)
            if known is not None and (known.handle is not None) == listed.running:
                if not listed.running and listed.labels.get(KIND) == session_log.KIND:
                    said = self.engine.logs(listed.id, lines=session_log.TAIL_LINES)
                    known = replace(known, last_words=session_log.tail(said))
                with self._lock:
                    self._about[key] = known
        return known

    # -- the wall -------------------------------------------------------------------------

    def see_to_guard(self, patience: float) -> None:
        """Have the rules put in place, or put back where somebody took them away."""
        self._guarded_at = time.monotonic()
        try:
            self._unguarded = self._guarding.answer(patience)
        except Unavailable:
            # It goes on in its thread, and says itself what came of it.
            self._guarded_at -= GUARD_SECONDS - FRESH_SECONDS

    def require_guard(self, patience: float) -> None:
        """Raises Unavailable while the rules are not in place: nothing may start then."""
        if self._unguarded:
            self._guarding.settle(patience)
        if self._unguarded:
            self.see_to_guard(patience)
        if self._unguarded:
            raise Unavailable(self._unguarded)

    def _see_to_guard(self) -> str:
        """Returns why the rules do not stand; empty where they do."""
        why = ""
        try:
            image = self.tools()
            if not self.guard.holds(image):
                if self.guard.stands:
                    log.warning("the rules on %s were changed: they are set again", self.name)
                self.guard.put(image)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", self.name, error)
            why = str(error)
        self._unguarded = why
        return why

    # -- images ---------------------------------------------------------------------------

    def images(self) -> tuple[Image, ...]:
        """Raises Unavailable where the engine does not answer."""
        return images.images_on(self.engine, self._default)

    def tools(self) -> str:
        """Raises ImageMissing where there is no image at all."""
        return images.tools(self.images(), node=self.name)

    def digest_of(self, reference: str) -> str:
        """Raises ImageMissing where it is not there."""
        return images.digest_of(self.images(), reference, node=self.name)


def wall_of(installation: str, options: DockerOptions, host: DockerHost) -> FirewallRules:
    """The wall of one machine. What answers on a machine's address is for the hub alone."""
    machines = tuple(each.address for each in options.hosts if each.address)
    return FirewallRules(
        installation=installation,
        address=options.internal_ip,
        ports=(options.hub_port, options.service_port),
        blocked=(*options.blocked, *machines),
        guest=bool(host.address),
    )
