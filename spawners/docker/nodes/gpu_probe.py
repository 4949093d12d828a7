"""List the GPUs of another machine with a container there."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ....hub.errors import BackendFailed, Unavailable
from ....hub.records.json_value import Json
from ...devices import nvml
from ..containers.template import KIND, LABEL
from ..engine import cdi
from ..engine.client import DockerClient

_SECONDS: Final = 20.0
_RUNTIME: Final = "nvidia"


def gpus(engine: DockerClient, installation: str, image: str) -> nvml.NvmlInventory:
    """Return the devices that NVML lists on the engine's machine.

    Raises:
        Unavailable: the engine does not answer, or the driver fails.
    """
    info = engine.info()
    runtimes = cast(Mapping[str, Json], info.get("Runtimes") or {})
    by_name = cdi.EVERY_GPU in cdi.listed(info)
    if _RUNTIME not in runtimes and not by_name:
        reason = f"The engine on {engine.node} cannot give GPUs to containers."
        return nvml.NvmlInventory(reason=reason)
    name = f"carrel-{installation}-gpus"
    try:
        status, output = engine.run_once(
            name, body(installation, image, by_name=by_name), seconds=_SECONDS
        )
    except BackendFailed as error:
        raise Unavailable(f"The GPUs of {engine.node} cannot be listed: {error}") from error
    if status != 0:
        last = output.strip().splitlines()[-1:] or [f"exit status {status}"]
        raise Unavailable(f"The GPUs of {engine.node} cannot be listed: {last[0]}")
    return nvml.parse(output, engine.node)


def body(installation: str, image: str, *, by_name: bool) -> dict[str, Json]:
    """Return the body of a container of the service that sees every GPU and nothing else.

    Args:
        by_name: request the GPUs by their CDI name, which needs no separate runtime.
    """
    all_gpus: dict[str, Json] = {"Driver": "nvidia", "Count": -1, "Capabilities": [["gpu"]]}
    if by_name:
        all_gpus = {"Driver": "cdi", "DeviceIDs": [cdi.EVERY_GPU]}
    return {
        "Image": image,
        "Entrypoint": [],
        "Cmd": ["python", "-P", "-m", "carrel.spawners.devices.driver"],
        "Env": [
            f"NVIDIA_VISIBLE_DEVICES={'void' if by_name else 'all'}",
            "NVIDIA_DRIVER_CAPABILITIES=utility",
        ],
        "Labels": {LABEL: installation, KIND: "probe"},
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "ReadonlyRootfs": True,
            "DeviceRequests": [all_gpus],
        },
    }
