"""List or measure the devices of another machine, with containers there."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.backend import MOST_VALIDATION_SECONDS
from ....hub.interfaces.devices import ContainerDevices, EngineDevices, ValidationReading
from ....hub.records.json_value import Json
from ....hub.scheduling.model.snapshot import Device
from ...devices import inventory, validation
from ...devices.environment import container_devices, device_environment
from ...devices.inventory import DriverInventory, NodeInventory
from ...devices.plugins import InstalledPlugin
from ..containers.template import KIND, LABEL, device_settings
from ..engine import cdi
from ..engine.client import DockerClient

_SECONDS: Final = 20.0


def devices_on(
    engine: DockerClient, installation: str, image: str, plugins: Sequence[InstalledPlugin]
) -> NodeInventory:
    """Return the devices of the engine's machine.

    Raises:
        Unavailable: the engine does not answer.
    """
    offered = cdi.engine_devices(engine.info())
    answers = [
        (plugin, answer)
        for plugin in plugins
        for answer in _answers(engine, installation, image, plugin, offered)
    ]
    if not answers:
        return NodeInventory(reason=f"The engine on {engine.node} cannot give containers devices.")
    return inventory.merge(engine.node, answers)


def _answers(
    engine: DockerClient,
    installation: str,
    image: str,
    plugin: InstalledPlugin,
    offered: EngineDevices,
) -> Iterator[DriverInventory | Unavailable]:
    """Yield what a plug-in lists there; nothing if the engine has no devices of its maker."""
    try:
        needed = plugin.loaded().probe(offered)
    except Exception as error:  # the code of a plug-in may raise anything
        yield Unavailable(str(error))
        return
    if needed is None:
        return
    name = f"carrel-{installation}-devices-{plugin.name}"
    try:
        status, output = engine.run_once(
            name, body(installation, image, plugin, needed), seconds=_SECONDS
        )
    except BackendFailed as error:
        yield Unavailable(f"The devices of {engine.node} cannot be listed: {error}")
        return
    if status != 0:
        yield inventory.failure(plugin, output, status)
        return
    try:
        yield inventory.parse(output, node=engine.node, driver=plugin.name)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield Unavailable(f"The devices of {engine.node} cannot be listed: {error}.")


def validation_on(
    engine: DockerClient, installation: str, image: str, devices: Sequence[Device]
) -> dict[str, ValidationReading]:
    """Measure devices of the engine's machine in a container that has them alone.

    Raises:
        BackendFailed: the container could not be run.
        Unavailable: the engine does not answer.
    """
    needed = container_devices(devices, cdi.engine_devices(engine.info()).names)
    settings = {**needed.environment, "HOME": "/tmp"}  # noqa: S108  # in the container
    status, output = engine.run_once(
        f"carrel-{installation}-validation",
        {
            **_closed(installation, image, needed),
            "Cmd": ["python", "-P", "-m", validation.__name__],
            "Env": [
                f"{name}={value}"
                for name, value in {**device_environment(devices), **settings}.items()
            ],
        },
        seconds=MOST_VALIDATION_SECONDS,
    )
    if status is None:
        hung = validation.hung_validation(output, MOST_VALIDATION_SECONDS)
        return {device.id: hung for device in devices}
    return validation.parse_validation(devices, status, output, output)


def body(
    installation: str, image: str, plugin: InstalledPlugin, needed: ContainerDevices
) -> dict[str, Json]:
    """Return the body of a container of the service that sees every device and nothing else."""
    return {
        **_closed(installation, image, needed),
        "Cmd": list(inventory.command(plugin)),
        "Env": [f"{name}={value}" for name, value in needed.environment.items()],
    }


def _closed(installation: str, image: str, needed: ContainerDevices) -> dict[str, Json]:
    """Return what such containers have in common: no network, no rights, nothing to write to."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Labels": {LABEL: installation, KIND: "probe"},
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "ReadonlyRootfs": True,
            **device_settings(needed),
        },
    }
