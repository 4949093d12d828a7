"""A machine of the pool: its engine, networks, firewall and containers."""

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
from ..containers.late_mounts import late_mounts_of
from ..containers.networks import Networks
from ..containers.template import KIND, LABEL, WARM, lease_of
from ..engine import images
from ..engine.client import Container, DockerClient, ListedContainer
from ..engine.timed_call import TimedCall

log = logging.getLogger(__name__)

SURVEY_SECONDS: Final = 1.0
"""How long the scheduling loop waits for an engine."""
FRESH_SECONDS: Final = 3.0
FIREWALL_SECONDS: Final = 30.0
_HERE = "unix://"


@dataclass(frozen=True, slots=True, kw_only=True)
class SurveyedContainer:
    """A container of a lease in a survey.

    Attributes:
        details: from an inspection after the container started, or after it ended.
        idle: a warm container that has the lease's name, but has not received its job.
    """

    id: str
    labels: Mapping[str, str]
    running: bool
    details: Container
    idle: bool = False

    @property
    def handle(self) -> Handle | None:
        return self.details.handle if self.running else None


Survey = Mapping[str, tuple[SurveyedContainer, ...]]
"""Containers by lease, running ones first."""


class Node:
    """A machine of the pool; safe to use from any thread.

    Attributes:
        here: whether its engine is on this machine.
        late_mounts: the folders of its warm containers.
    """

    def __init__(self, host: DockerHost, settings: BackendSettings, options: DockerOptions) -> None:
        self.name = host.node
        self.here = host.url.startswith(_HERE)
        self.engine = DockerClient(host)
        self.networks = Networks(
            engine=self.engine,
            installation=settings.installation,
            subnets=options.subnets,
            engine_index=options.hosts.index(host),
            engine_count=len(options.hosts),
        )
        self.firewall = Firewall(
            engine=self.engine, rules=firewall_rules(settings.installation, options, host)
        )
        self.late_mounts = late_mounts_of(settings)
        self._labels = {LABEL: settings.installation}
        self._default = options.image
        slow = f"The Docker engine on {self.name} is slow: it has not answered yet."
        self._survey_call = TimedCall(self._survey, slow)
        self._firewall_check = TimedCall(self._check_firewall, slow)
        self._inspected: dict[tuple[str, bool], Container] = {}
        self._lock = threading.Lock()
        self._surveyed_at = self._firewall_checked_at = -1e9
        self._engine_problem = ""
        self._firewall_problem = f"The firewall rules of containers are not set on {self.name} yet."

    # -- containers -----------------------------------------------------------------------

    def survey(self, patience: float = SURVEY_SECONDS) -> Survey:
        """Return the containers of this installation.

        Raises:
            Unavailable: the engine does not answer, or not in time.
        """
        try:
            survey = self._survey_call.result(patience)
        except Unavailable as error:
            self._engine_problem = str(error)
            raise
        finally:
            self._surveyed_at = time.monotonic()
        self._engine_problem = ""
        return survey

    def unavailable_reason(self) -> str:
        """Return a sentence that says why no container can start; empty if containers can start."""
        if time.monotonic() - self._surveyed_at > FRESH_SECONDS:
            try:
                self.survey()
            except Unavailable:
                return self._engine_problem
        if (
            not self._engine_problem
            and time.monotonic() - self._firewall_checked_at > FIREWALL_SECONDS
        ):
            self.ensure_firewall(SURVEY_SECONDS)
        return self._engine_problem or self._firewall_problem

    def _survey(self) -> Survey:
        found: dict[str, list[SurveyedContainer]] = {}
        listed = [
            container
            for container in self.engine.containers(self._labels)
            if lease_of(container.name, container.labels)
        ]
        started = (
            self.late_mounts.filled()
            if any(WARM in container.labels for container in listed)
            else ()
        )
        for container in sorted(listed, key=lambda container: not container.running):
            warm = container.labels.get(WARM, "")
            idle = bool(warm) and container.running and warm not in started
            if warm in started and (container.id, True) not in self._inspected:
                # The service may have been killed after the mounts and before the wake-up.
                self.late_mounts.wake(warm)
            details = self._inspect_once(container)
            if details is not None:
                running = container.running and details.handle is not None and not idle
                seen = SurveyedContainer(
                    id=container.id,
                    labels=container.labels,
                    running=running,
                    details=details,
                    idle=idle,
                )
                found.setdefault(lease_of(container.name, container.labels), []).append(seen)
        with self._lock:
            current = {(container.id, container.running) for container in listed}
            kept = current & self._inspected.keys()
            self._inspected = {key: self._inspected[key] for key in kept}
        return {lease: tuple(containers) for lease, containers in found.items()}

    def _inspect_once(self, listed: ListedContainer) -> Container | None:
        """Inspect a container once while it runs, and once after it has ended."""
        key = (listed.id, listed.running)
        known = self._inspected.get(key)
        if known is None:
            known = self.engine.inspect(listed.id)
            if known is not None and (known.handle is not None) == listed.running:
                if not listed.running and listed.labels.get(KIND) == session_log.KIND:
                    text = self.engine.logs(listed.id, lines=session_log.TAIL_LINES)
                    known = replace(known, log_tail=session_log.tail(text))
                with self._lock:
                    self._inspected[key] = known
        return known

    # -- firewall -------------------------------------------------------------------------

    def ensure_firewall(self, patience: float) -> None:
        """Set the firewall rules, or set them again if they were changed."""
        self._firewall_checked_at = time.monotonic()
        try:
            self._firewall_problem = self._firewall_check.result(patience)
        except Unavailable:
            # The check continues in its thread and records its result there.
            self._firewall_checked_at -= FIREWALL_SECONDS - FRESH_SECONDS

    def require_firewall(self, patience: float) -> None:
        """Check that the firewall rules are set: no container may start without them.

        Raises:
            Unavailable: they are not set.
        """
        if self._firewall_problem:
            self._firewall_check.settle(patience)
        if self._firewall_problem:
            self.ensure_firewall(patience)
        if self._firewall_problem:
            raise Unavailable(self._firewall_problem)

    def _check_firewall(self) -> str:
        """Set the rules if needed; return why they are not set, empty if they are."""
        why = ""
        try:
            image = self.tools_image()
            if not self.firewall.is_unchanged(image):
                if self.firewall.is_set:
                    log.warning("the firewall rules on %s were changed; set again", self.name)
                self.firewall.apply(image)
        except (BackendFailed, Unavailable) as error:
            log.warning("%s: %s", self.name, error)
            why = str(error)
        self._firewall_problem = why
        return why

    # -- images ---------------------------------------------------------------------------

    def images(self) -> tuple[Image, ...]:
        """Return the images there. Raises Unavailable if the engine does not answer."""
        return images.images_on(self.engine, self._default)

    def tools_image(self) -> str:
        """Return the base image's id. Raises ImageMissing if there is no image."""
        return images.tools_image(self.images(), node=self.name)

    def digest_of(self, reference: str) -> str:
        """Return the id of an image. Raises ImageMissing if it is not there."""
        return images.digest_of(self.images(), reference, node=self.name)


def firewall_rules(installation: str, options: DockerOptions, host: DockerHost) -> FirewallRules:
    """Return the rules of a machine; containers may reach no other port of machines of the pool."""
    machines = [machine.address for machine in options.hosts if machine.address]
    if host.address:
        machines.append(options.internal_ip)
    return FirewallRules(
        installation=installation,
        address=options.internal_ip,
        ports=(options.hub_port, options.service_port),
        blocked=(*options.blocked, *machines),
        guest=bool(host.address),
    )
