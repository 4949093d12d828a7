"""Sessions in containers, each on a lease: DockerSpawner with Carrel's template over it.

The options of DockerSpawner count as ever (volumes, limits, environment, hooks, …); what keeps a
session inside its container and to its lease comes last. A container is named after its lease,
so that none is ever found again by another start, and carries the lease as a label, by which a
hub that was killed finds it.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import cache, partial
from typing import Any, ClassVar, cast

import docker
import requests.exceptions
from docker.errors import APIError, DockerException, NotFound
from dockerspawner import DockerSpawner
from traitlets import Instance, default

from ...hub.errors import CarrelError, Unavailable
from ...hub.interfaces.backend_settings import BackendSettings, DockerHost, DockerOptions
from ...hub.schemas import LeaseOut, StartedIn
from ..common import course_links
from ..sessions.lease_mixin import LeaseMixin
from ..sessions.lease_options import devices_of
from ..sessions.readiness import Address
from .containers import session_log
from .containers.course_mounts import graded_mounts, linked
from .containers.home_mounts import course_data, homes_of, inside, mounts, recovery
from .containers.networks import Networks
from .containers.overlay import overlay
from .containers.template import (
    LABEL,
    LEASE,
    SESSION_PORT,
    ContainerBounds,
    Task,
    container,
    name_of,
)
from .engine import cdi
from .engine.client import START_SECONDS, DockerClient, connect, in_words, seconds_of
from .engine.images import digest_of, images_on
from .engine.running_cache import RunningContainers

CALLS_AT_ONCE = 8
KILL_SECONDS = 2.0


@cache
def engine_of(host: DockerHost) -> DockerClient:
    return DockerClient(host)


@cache
def running_on(host: DockerHost, installation: str) -> RunningContainers:
    """The containers of an installation that run there; of plain ones, too."""

    def ask() -> frozenset[str]:
        seen = engine_of(host).containers({LABEL: installation})
        return frozenset(each.id for each in seen if each.running)

    return RunningContainers(ask)


class ContainerSpawner(DockerSpawner):  # type: ignore[misc]  # dockerspawner has no types
    """``DockerSpawner`` that never takes an engine that does not answer for a dead session."""

    site = Instance(
        BackendSettings,
        help="""The installation, as the service knows it; set by Carrel.""",
    ).tag(config=True)

    _executor = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="docker")
    _clients: ClassVar[dict[DockerHost, docker.APIClient]] = {}
    _host: DockerHost | None = None
    _starting = False
    _ending = False
    """In both, what was true a moment ago is not enough."""

    @property
    def options(self) -> DockerOptions:
        options = self.site.docker
        assert options is not None
        return options

    @property
    def host(self) -> DockerHost:
        """The machine of the lease; this one before there is a lease."""
        return self._host or self.options.hosts[0]

    @property
    def engine(self) -> DockerClient:
        return engine_of(self.host)

    @property
    def client(self) -> docker.APIClient:
        """With time-outs. What an administrator sets as ``client_kwargs`` has the last word."""
        if self.host not in self._clients:
            self._clients[self.host] = connect(self.host, START_SECONDS, **self.client_kwargs)
        return self._clients[self.host]

    def _docker(self, method: str, *args: object, **kwargs: object) -> object:
        try:
            return super()._docker(method, *args, **kwargs)
        except APIError:
            raise  # DockerSpawner knows what to do about most of them
        except (DockerException, requests.exceptions.RequestException, OSError) as error:
            raise Unavailable(f"The Docker engine on {self.host.node} does not answer.") from error

    async def get_object(self) -> Mapping[str, Any] | None:  # Any: JSON of the engine
        """None only where the engine says that there is none."""
        try:
            found = await self.docker("inspect_container", self.object_name)
        except NotFound:
            self.object_id = ""
            return None
        self.object_id = found["Id"]
        return cast(Mapping[str, Any], found)

    async def get_ip_and_port(self) -> tuple[str, int]:
        """Where the proxy finds it: in its network, or at the address of another machine."""
        if not self.host.address:
            return cast(tuple[str, int], await super().get_ip_and_port())
        (published, *_) = await self.docker("port", self.object_id, self.port)
        return self.host.address, int(published["HostPort"])

    async def poll(self) -> int | None:
        """The exit status; None while it runs, and while nobody can say."""
        try:
            if await self._ran_a_moment_ago():
                return None
            found = await self.get_object()
        except (CarrelError, APIError) as error:
            self.log.warning("Nothing is known of %s: %s", self._log_name, error)
            return None
        if found is None:
            return 0
        state = found["State"]
        return None if state["Running"] else int(state["ExitCode"])

    async def _ran_a_moment_ago(self) -> bool:
        if not self.object_id or self._starting or self._ending:
            return False
        return await running_on(self.host, self.site.installation).has(self.object_id)


class DockerSession(LeaseMixin, ContainerSpawner):
    """A session on a lease, in a container."""

    # An engine that makes many containers has better things to do than to say that they run.
    look_seconds = 1.0
    _who: StartedIn | None = None
    _last_words = ""
    _recovery: Mapping[str, str] = {}
    _graded: tuple[str, ...] = ()
    """Courses whose folders this session has."""

    @default("port")
    def _port_default(self) -> int:
        return SESSION_PORT

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return ["jupyterhub-singleuser"]

    @default("args")
    def _args_default(self) -> list[str]:
        """No outside host is asked for news or extensions."""
        return [
            "--ServerApp.terminado_settings=shell_command=['/bin/bash']",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.news_url=None",
            "--LabApp.extension_manager=readonly",
        ]

    @default("default_url")
    def _default_url_default(self) -> str:
        return "/lab"

    @default("remove")
    def _remove_default(self) -> bool:
        return True

    @default("pull_policy")
    def _pull_policy_default(self) -> str:
        """Images are built here or loaded by an administrator, and named by their digest."""
        return "never"

    @default("use_internal_ip")
    def _use_internal_ip_default(self) -> bool:
        return True

    # -- what LeaseMixin asks ---------------------------------------------------------------

    async def start_server(self) -> Address:
        lease = self._leased()
        self._host = self._host_of(lease)
        self._last_words = ""
        try:
            self.image = await asyncio.to_thread(self._digest, lease.image)
            self.network_name = await asyncio.to_thread(self._network)
            self._recovery = await asyncio.to_thread(self._home)
            if self._recovery:
                self._teller.say(65, self._recovery["CARREL_RECOVERY"])
            self._graded = await linked(
                *(self.site, self._applicant.link, self.user.name, self.host),
                tell=partial(self._teller.say, 65),
            )
            self.object_name = name_of(self.site.installation, lease.id)
            address: Address = await super().start_server()
            self._who = _started(await self.get_object())
        except APIError as error:
            raise in_words(error, self.host.node) from error
        return address

    async def running_server(self, lease: LeaseOut) -> Address | None:
        self._host = self._host_of(lease)
        name = name_of(self.site.installation, lease.id)
        try:
            found = await self.docker("inspect_container", name)
        except NotFound:
            return None
        except APIError as error:
            raise in_words(error, self.host.node) from error
        if not found["State"]["Running"] or found["Config"]["Labels"].get(LEASE) != lease.id:
            return None
        environment = dict(each.split("=", 1) for each in found["Config"]["Env"])
        self.object_id, self.object_name = found["Id"], name
        self.network_name = found["HostConfig"]["NetworkMode"]
        self.api_token = environment["JUPYTERHUB_API_TOKEN"]
        self._who = _started(found)
        return await self.get_ip_and_port()

    def who_it_is(self) -> StartedIn | None:
        return self._who

    def last_words(self) -> str:
        return self._last_words

    async def kill_started(self) -> None:
        """Its container stays for the service, which keeps the log and removes it."""
        if self.object_id:
            try:
                await asyncio.to_thread(self._kill, self.object_id)
            except CarrelError as error:
                # The service knows that the lease has ended, and sees to it.
                self.log.warning("%s was not stopped: %s", self.object_name, error)

    async def stop(self, now: bool = False) -> None:
        self._ending = True
        try:
            await super().stop(now)
        finally:
            self._ending = False

    # -- what DockerSpawner asks ------------------------------------------------------------

    async def check_allowed(self, image: str) -> str:
        """The service has checked what was asked for, and has written it into the lease."""
        return str(self.image)

    async def remove_object(self) -> None:
        """Its log is kept."""
        try:
            await asyncio.to_thread(self._take_away, self.object_id)
        except CarrelError as error:
            self.log.warning("%s was not removed: %s", self.object_name, error)

    def get_env(self) -> dict[str, str]:
        env: dict[str, str] = super().get_env()
        env.pop("CARREL_STATE", None)  # a path of the host
        home = {"HOME": inside(self.user.name), "SHELL": "/bin/bash"}
        shown = course_links.environment(home["HOME"], self._graded, self._group)
        return env | home | shown | dict(self._recovery)

    async def docker(self, method: str, *args: object, **kwargs: object) -> Any:
        """The one call that makes a container is made with Carrel's template."""
        if method == "create_container":
            name = kwargs.pop("name")
            formed = self.client.create_container_config(**kwargs)
            body = await asyncio.to_thread(self._body, formed)
            return await super().docker("create_container_from_config", body, name)
        return await super().docker(method, *args, **kwargs)

    # -- inside -----------------------------------------------------------------------------

    def _leased(self) -> LeaseOut:
        assert self._lease is not None
        return self._lease

    def _host_of(self, lease: LeaseOut) -> DockerHost:
        """Where its lease is."""
        found = next((host for host in self.options.hosts if host.node == lease.node), None)
        return found or self.options.hosts[0]

    def _digest(self, wanted: str) -> str:
        known = images_on(self.engine, self.options.image)
        return digest_of(known, wanted, node=self.host.node)

    def _network(self) -> str:
        """The person's own, made here if nothing of theirs runs yet."""
        networks = Networks(
            engine=self.engine,
            installation=self.site.installation,
            subnets=self.options.subnets,
        )
        return networks.ensure(str(self.user.name))

    def _home(self) -> Mapping[str, str]:
        """Made ready; returns what a session in a full one is told."""
        owner, homes = str(self.user.name), homes_of(self.site)
        homes.ready(owner)
        return recovery(homes.use(owner))

    def _body(self, formed: Mapping[str, Any]) -> Mapping[str, Any]:
        """What is created; everything that a person chose has been checked by the service."""
        options, lease, owner = self.options, self._leased(), self.user.name
        devices = devices_of(lease)
        bounds = ContainerBounds(
            memory=int(self.mem_limit or options.memory),
            cpus=float(self.cpu_limit or options.cpus),
            pids=options.pids,
            tmp=options.tmp,
        )
        task = Task(
            installation=self.site.installation,
            lease_id=lease.id,
            request_id=self.request_id,
            epoch=lease.epoch,
            owner=owner,
            kind=session_log.KIND,
            image=self.image,
            command=(),
            uid=options.uid,
            network=self.network_name,
            bounds=bounds,
            environment=self.get_env() | course_data(self.site, self._group),
            mounts=(
                *mounts(self.site, owner, self._group),
                *graded_mounts(self.site, self._graded),
            ),
            devices=devices,
            cdi=cdi.names(self.engine, devices),
            published=self.host.address,
            workdir=inside(owner),
        )
        return overlay(formed, container(task), {session_log.SERVER: self.name})

    def _kill(self, container: str) -> None:
        self.engine.kill(container, signal.SIGKILL.name)
        self.engine.wait(container, KILL_SECONDS)
        self._last_words = session_log.tail(self._keep_log(container))

    def _take_away(self, container: str) -> None:
        self._keep_log(container)
        self.engine.remove(container)

    def _keep_log(self, container: str) -> str:
        text = self.engine.logs(container, lines=session_log.KEPT_LINES)
        session_log.keep(session_log.path_of(self.site.state, self.user.name, self.name), text)
        return text


def _started(found: Mapping[str, Any] | None) -> StartedIn | None:
    """None where it has ended already: whoever waits for its answer notices."""
    if found is None or not found["State"]["Pid"]:
        return None
    state = found["State"]
    return StartedIn(pid=state["Pid"], started_at=seconds_of(state["StartedAt"]))
