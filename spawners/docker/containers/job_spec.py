"""Build the container of a job's attempt: files, environment and launch order."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ....hub.attempts.output_limits import OutputLimits
from ....hub.attempts.spec import (
    CLAIM,
    FILES,
    LOG,
    NOTICE,
    PACKAGES,
    PROGRESS,
    REPORTS,
    SAVED,
    AttemptSpec,
)
from ....hub.files.safe_fs import Owner, give_folder, lies_in
from ....hub.interfaces.backend import LaunchOrder
from ....hub.interfaces.backend_settings import COURSE_DATA, BackendSettings, DockerOptions
from ....hub.records.json_value import Json
from ...common.gang_start import member_spec
from ...devices.environment import readable
from ...processes.lease_processes import LEASE_VARIABLE
from ...runner.kernels.forkserver import PACKAGES_VARIABLE
from ...runner.warm_start import KNOWN_PACKAGES
from .home_mounts import course_data, home_path, mounts
from .template import ARCHIVE, ATTEMPT, INPUT, ContainerBounds, Mount, Task, container

KIND = "job"
NO_NETWORK = "none"
_RUNNER = f'exec python -P -m carrel.spawners.runner {ATTEMPT} >>"{ATTEMPT}/{LOG}" 2>&1'
"""The runner's output before it opens its log goes to the same file."""
_WARM_COMMAND = ("python", "-P", "-m", "carrel.spawners.runner", "--wait", ATTEMPT)
_PATHS = {
    "CARREL_OUTPUT_DIR": f"{ATTEMPT}/{FILES}",
    "CARREL_PROGRESS": f"{ATTEMPT}/{PROGRESS}",
    "CARREL_REPORTS": f"{ATTEMPT}/{REPORTS}",
    "CARREL_NOTICE": f"{ATTEMPT}/{NOTICE}",
    "CARREL_SAVED": f"{ATTEMPT}/{SAVED}",
    PACKAGES_VARIABLE: f"{ATTEMPT}/{PACKAGES}",
}
"""Paths at which any job reports what the service reads, and gets notices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Jobs:
    """Builds the containers of an installation's jobs."""

    settings: BackendSettings
    options: DockerOptions
    limits: OutputLimits

    @property
    def owner(self) -> Owner | None:
        """The owner of an attempt's files; None if the service is not root and cannot change it."""
        return self.options.owner

    def prepare(self, order: LaunchOrder) -> None:
        """Prepare the attempt's folder and its inputs, readable for the user in the container.

        Raises:
            OSError: the folder or an input cannot be written, or is not a regular file or folder.
        """
        order.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if order.member is not None:
            order.member.output_folder.mkdir(exist_ok=True, mode=0o700)
        if self.owner is not None:
            give_folder(order.folder, self.owner)
            if order.member is not None:
                give_folder(order.member.output_folder, self.owner)
            for path in filter(None, (order.input_path, order.archive_path)):
                # These are beside the attempt folders, where only the service can write.
                if path.exists():
                    os.chown(path, *self.owner, follow_symlinks=False)
        self._order(order).write(order.folder, owner=self.owner)

    def body(
        self, order: LaunchOrder, *, image: str, network: str, cdi: frozenset[str]
    ) -> dict[str, Json]:
        """Return the body of the engine's create call."""
        options = self.options
        return container(
            Task(
                installation=self.settings.installation,
                lease_id=order.lease_id,
                request_id=order.request_id,
                epoch=order.epoch,
                owner=order.owner,
                kind=KIND,
                image=image,
                command=("/bin/sh", "-c", _RUNNER),
                uid=options.uid,
                network=network,
                outside=order.job.internet,
                bounds=self._bounds,
                environment={
                    **_environment(order),
                    **course_data(self.settings, order.group),
                },
                mounts=self.mounts(order),
                devices=order.devices,
                cdi=cdi,
                workdir=home_path(order.owner),
            )
        )

    def warm_body(
        self, name: str, *, image: str, mounts: tuple[Mount, ...], packages: str = ""
    ) -> dict[str, Json]:
        """Return the body of a warm container: the same, but without owner and network.

        Args:
            packages: the list of those that kernels of this image have used.
        """
        return container(
            Task(
                installation=self.settings.installation,
                lease_id="",
                request_id="",
                epoch=0,
                owner="",
                kind=KIND,
                image=image,
                command=_WARM_COMMAND,
                uid=self.options.uid,
                network=NO_NETWORK,
                bounds=self._bounds,
                environment={
                    "HOME": "/tmp",  # noqa: S108
                    LEASE_VARIABLE: name,
                    KNOWN_PACKAGES: packages,
                    **_PATHS,
                },
                mounts=mounts,
                warm=name,
            )
        )

    @property
    def _bounds(self) -> ContainerBounds:
        options = self.options
        return ContainerBounds(
            memory=options.memory, cpus=options.cpus, pids=options.pids, tmp=options.tmp
        )

    def mounts(self, order: LaunchOrder) -> tuple[Mount, ...]:
        """Return the mounts of a job."""
        own = [Mount(source=str(order.folder.resolve()), target=ATTEMPT)]
        if order.member is not None and order.member.rank:
            files = str(order.member.output_folder.resolve())
            own.append(Mount(source=files, target=f"{ATTEMPT}/{FILES}"))
        if order.input_path.exists():
            own.append(_read_only(order.input_path, INPUT))
        if order.archive_path is not None:
            own.append(_read_only(order.archive_path, ARCHIVE))
        return (*own, *mounts(self.settings, order.owner, order.group))

    def _order(self, order: LaunchOrder) -> AttemptSpec:
        return AttemptSpec(
            lease_id=order.lease_id,
            request_id=order.request_id,
            epoch=order.epoch,
            token=order.token,
            service_url=self.settings.service_url,
            input_path=INPUT,
            home=home_path(order.owner),
            devices=tuple(readable(device) for device in order.devices),
            device_ids=tuple(device.id for device in order.devices),
            job=order.job,
            archive_path=ARCHIVE if order.archive_path else "",
            image=order.image,
            owner=order.owner,
            course_data=course_data(self.settings, order.group).get(COURSE_DATA, ""),
            member=member_spec(order),
            limits=self.limits,
        )


def was_claimed(folder: Path) -> bool:
    """Whether a runner has claimed this attempt."""
    return lies_in(folder, CLAIM)


def _read_only(path: Path, target: str) -> Mount:
    return Mount(source=str(path.resolve()), target=target, read_only=True)


def _environment(order: LaunchOrder) -> Mapping[str, str]:
    return {
        "HOME": home_path(order.owner),
        "USER": order.owner,
        "LOGNAME": order.owner,
        LEASE_VARIABLE: order.lease_id,
        "CARREL_REQUEST": order.request_id,
        **_PATHS,
    }
