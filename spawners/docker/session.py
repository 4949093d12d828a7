"""Run sessions in containers, each on a lease: DockerSpawner with Carrel's template.

The options of DockerSpawner apply (volumes, limits, environment, hooks, …); options that isolate a
session or bind it to its lease take precedence. A container is named after its lease, so that no
other start finds it, and has the lease as a label, by which a restarted hub finds it.
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
from .containers.course_mounts import graded_mounts, link_courses
from .containers.home_mounts import course_data, home_folders, home_path, mounts, recovery
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
from .engine.client import START_SECONDS, DockerClient, connect, seconds_of, translate_error
from .engine.images import digest_of, images_on
from .engine.running_cache import RunningContainers

CALLS_AT_ONCE = 8
KILL_SECONDS = 2.0


@cache
def engine_of(host: DockerHost) -> DockerClient:
    return DockerClient(host)


@cache
def running_on(host: DockerHost, installation: str) -> RunningContainers:
    """Return the cache of an installation's running containers on a host."""

    def query() -> frozenset[str]:
        containers = engine_of(host).containers({LABEL: installation})
        return frozenset(container.id for container in containers if container.running)

    return RunningContainers(query)


class ContainerSpawner(DockerSpawner):  # type: ignore[misc]  # dockerspawner has no types
    """``DockerSpawner`` that does not report a session as dead when its engine does not answer."""

    site = Instance(
        BackendSettings,
        help="""Settings of the installation that the service shares with spawners; set by
        Carrel.""",
    ).tag(config=True)

    _executor = ThreadPoolExecutor(CALLS_AT_ONCE, thread_name_prefix="docker")
    _clients: ClassVar[dict[DockerHost, docker.APIClient]] = {}
    _host: DockerHost | None = None
    _starting = False
    _ending = False
    """While the session starts or ends, a cached state is not recent enough."""

    @property
    def options(self) -> DockerOptions:
        options = self.site.docker
        assert options is not None
        return options

    @property
    def host(self) -> DockerHost:
        """The machine of the lease; this machine before there is a lease."""
        return self._host or self.options.hosts[0]

    @property
    def engine(self) -> DockerClient:
        return engine_of(self.host)

    @property
    def client(self) -> docker.APIClient:
        """A client with timeouts; an administrator's ``client_kwargs`` take precedence."""
        if self.host not in self._clients:
            self._clients[self.host] = connect(self.host, START_SECONDS, **self.client_kwargs)
        return self._clients[self.host]

    def _docker(self, method: str, *args: object, **kwargs: object) -> object:
        try:
            return super()._docker(method, *args, **kwargs)
        except APIError:
            raise  # DockerSpawner handles most of them
        except (DockerException, requests.exceptions.RequestException, OSError) as error:
            raise Unavailable(f"The Docker engine on {self.host.node} does not answer.") from error

    async def get_object(self) -> Mapping[str, Any] | None:  # Any: JSON of the engine
        """Return the container; None only if the engine reports that it does not exist."""
        try:
            found = await self.docker("inspect_container", self.object_name)
        except NotFound:
            self.object_id = ""
            return None
        self.object_id = found["Id"]
        return cast(Mapping[str, Any], found)

    async def get_ip_and_port(self) -> tuple[str, int]:
        """Return the address for the proxy: in the network, or published on another machine."""
        if not self.host.address:
            return cast(tuple[str, int], await super().get_ip_and_port())
        (published, *_) = await self.docker("port", self.object_id, self.port)
        return self.host.address, int(published["HostPort"])

    async def poll(self) -> int | None:
        """Return the exit status; None while it runs, and while its state is unknown."""
        try:
            if await self._ran_recently():
                return None
            found = await self.get_object()
        except (CarrelError, APIError) as error:
            self.log.warning("The state of %s is unknown: %s", self._log_name, error)
            return None
        if found is None:
            return 0
        state = found["State"]
        return None if state["Running"] else int(state["ExitCode"])

    async def _ran_recently(self) -> bool:
        if not self.object_id or self._starting or self._ending:
            return False
        return await running_on(self.host, self.site.installation).has(self.object_id)


class DockerSession(LeaseMixin, ContainerSpawner):
    """A session on a lease, in a container."""

    # Less load for an engine that creates many containers.
    poll_seconds = 1.0
    _process: StartedIn | None = None
    _log_tail = ""
    _recovery: Mapping[str, str] = {}
    _graded: tuple[str, ...] | None = None
    """The courses whose folders are mounted in this session; None if they cannot be."""

    @default("port")
    def _port_default(self) -> int:
        return SESSION_PORT

    @default("cmd")
    def _cmd_default(self) -> list[str]:
        return ["jupyterhub-singleuser"]

    @default("args")
    def _args_default(self) -> list[str]:
        """Disable requests to external hosts for news and extensions."""
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
        """Never pull: administrators build or load images, which are referenced by digest."""
        return "never"

    @default("use_internal_ip")
    def _use_internal_ip_default(self) -> bool:
        return True

    # -- LeaseMixin -------------------------------------------------------------------------

    async def start_server(self) -> Address:
        lease = self._leased()
        self._host = self._host_of(lease)
        self._log_tail = ""
        try:
            self.image = await asyncio.to_thread(self._digest, lease.image)
            self.network_name = await asyncio.to_thread(self._network)
            self._recovery = await asyncio.to_thread(self._home)
            if self._recovery:
                self._progress.say(65, self._recovery["CARREL_RECOVERY"])
            self._graded = await link_courses(
                *(self.site, self._lease_request.link, self.user.name, self.host),
                say=partial(self._progress.say, 65),
            )
            self.object_name = name_of(self.site.installation, lease.id)
            address: Address = await super().start_server()
            self._process = _process_of(await self.get_object())
        except APIError as error:
            raise translate_error(error, self.host.node) from error
        return address

    async def running_server(self, lease: LeaseOut) -> Address | None:
        self._host = self._host_of(lease)
        name = name_of(self.site.installation, lease.id)
        try:
            found = await self.docker("inspect_container", name)
        except NotFound:
            return None
        except APIError as error:
            raise translate_error(error, self.host.node) from error
        if not found["State"]["Running"] or found["Config"]["Labels"].get(LEASE) != lease.id:
            return None
        environment = dict(entry.split("=", 1) for entry in found["Config"]["Env"])
        self.object_id, self.object_name = found["Id"], name
        self.network_name = found["HostConfig"]["NetworkMode"]
        self.api_token = environment["JUPYTERHUB_API_TOKEN"]
        self._process = _process_of(found)
        return await self.get_ip_and_port()

    def server_process(self) -> StartedIn | None:
        return self._process

    def log_tail(self) -> str:
        return self._log_tail

    async def kill_started(self) -> None:
        """Kill the container; the service keeps its log and removes it."""
        if self.object_id:
            try:
                await asyncio.to_thread(self._kill, self.object_id)
            except CarrelError as error:
                # The service removes the container, because its lease has ended.
                self.log.warning("%s was not stopped: %s", self.object_name, error)

    async def stop(self, now: bool = False) -> None:
        self._ending = True
        try:
            await super().stop(now)
        finally:
            self._ending = False

    # -- DockerSpawner ----------------------------------------------------------------------

    async def check_allowed(self, image: str) -> str:
        """Accept the image: the service has checked it and has stored it in the lease."""
        return str(self.image)

    async def remove_object(self) -> None:
        """Remove the container, and keep its log."""
        try:
            await asyncio.to_thread(self._remove, self.object_id)
        except CarrelError as error:
            self.log.warning("%s was not removed: %s", self.object_name, error)

    def get_env(self) -> dict[str, str]:
        env: dict[str, str] = super().get_env()
        env.pop("CARREL_STATE", None)  # a path of the host
        home = {"HOME": home_path(self.user.name), "SHELL": "/bin/bash"}
        course = course_links.environment(home["HOME"], self._graded, self._group)
        return env | home | course | dict(self._recovery)

    async def docker(self, method: str, *args: object, **kwargs: object) -> Any:
        """Make a call of the client; creation of a container uses Carrel's template."""
        if method == "create_container":
            name = kwargs.pop("name")
            options_body = self.client.create_container_config(**kwargs)
            body = await asyncio.to_thread(self._body, options_body)
            return await super().docker("create_container_from_config", body, name)
        return await super().docker(method, *args, **kwargs)

    # -- private ------------------------------------------------------------------------------

    def _leased(self) -> LeaseOut:
        assert self.lease is not None
        return self.lease

    def _host_of(self, lease: LeaseOut) -> DockerHost:
        """Return the host of a lease."""
        hosts = self.options.hosts
        return next((host for host in hosts if host.node == lease.node), hosts[0])

    def _digest(self, wanted: str) -> str:
        known = images_on(self.engine, self.options.image)
        return digest_of(known, wanted, node=self.host.node)

    def _network(self) -> str:
        """Return the user's network; create it if it does not exist."""
        networks = Networks(
            engine=self.engine,
            installation=self.site.installation,
            subnets=self.options.subnets,
        )
        return networks.ensure(str(self.user.name))

    def _home(self) -> Mapping[str, str]:
        """Prepare the home; return the variables of a recovery session if it is full."""
        owner, homes = str(self.user.name), home_folders(self.site)
        homes.ready(owner)
        return recovery(homes.use(owner))

    def _body(self, options_body: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the body of the create call; the service has checked the user's choices."""
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
                *graded_mounts(self.site, self._graded or ()),
            ),
            devices=devices,
            cdi=cdi.names(self.engine, devices),
            published=self.host.address,
            workdir=home_path(owner),
        )
        return overlay(options_body, container(task), {session_log.SERVER: self.name})

    def _kill(self, container: str) -> None:
        self.engine.kill(container, signal.SIGKILL.name)
        self.engine.wait(container, KILL_SECONDS)
        self._log_tail = session_log.tail(self._keep_log(container))

    def _remove(self, container: str) -> None:
        self._keep_log(container)
        self.engine.remove(container)

    def _keep_log(self, container: str) -> str | None:
        text = self.engine.logs(container, lines=session_log.KEPT_LINES)
        session_log.keep(session_log.path_of(self.site.state, self.user.name, self.name), text)
        return text


def _process_of(found: Mapping[str, Any] | None) -> StartedIn | None:
    """Return the container's process; None if it has ended."""
    if found is None or not found["State"]["Pid"]:
        return None
    state = found["State"]
    return StartedIn(pid=state["Pid"], started_at=seconds_of(state["StartedAt"]))
