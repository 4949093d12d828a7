"""List the devices of another machine with one container there for each plug-in."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from ....hub.errors import BackendFailed, Unavailable
from ....hub.interfaces.devices import ContainerDevices, EngineDevices
from ....hub.records.json_value import Json
from ...devices import inventory
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


def body(
    installation: str, image: str, plugin: InstalledPlugin, needed: ContainerDevices
) -> dict[str, Json]:
    """Return the body of a container of the service that sees every device and nothing else."""
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": list(inventory.command(plugin)),
        "Env": [f"{name}={value}" for name, value in needed.environment.items()],
        "Labels": {LABEL: installation, KIND: "probe"},
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "ReadonlyRootfs": True,
            **device_settings(needed),
        },
    }
