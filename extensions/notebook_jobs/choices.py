"""What the form "Create Job" offers: environments (a group and an image) and compute types.

The stock form has one list of environments, and for each of them one list of compute types. An
environment is a group with one of the images, and a compute type is a number of devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ...hub.client import job_builder
from ...hub.errors import InvalidInput
from ...hub.messages import units
from ...hub.schemas import DeviceOut, GroupOut, most_devices
from ...hub.schemas.images import ImagesOut

FILE_EXTENSIONS: Final = ("ipynb", "py")
OUTPUT_FORMATS: Final = {"ipynb": "Notebook", "html": "HTML"}
_EACH_UP_TO: Final = 8
"""Larger numbers of devices are offered in powers of two."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeType:
    """A number of devices, of one model or of any."""

    devices: int
    model: str | None = None

    def __str__(self) -> str:
        return units.devices(self.devices, self.model)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnvironment:
    """An environment of the form; its name is what the form shows and sends.

    Attributes:
        image: name of the image; empty on a backend without images.
    """

    name: str
    group: str
    image: str = ""
    description: str = ""
    compute_types: tuple[ComputeType, ...]

    def compute_type(self, name: str | None) -> ComputeType:
        """Return the compute type of this name; the first one if none is given.

        Raises:
            InvalidInput: the environment does not offer it.
        """
        if not name:
            return self.compute_types[0]
        for each in self.compute_types:
            if str(each) == name:
                return each
        raise InvalidInput(
            f"There is no compute type {name[:80]!r} in {self.name}.",
            accepted=f"Choose one of: {', '.join(map(str, self.compute_types))}.",
        )


def job_environments(
    groups: Sequence[GroupOut], devices: Sequence[DeviceOut], images: ImagesOut
) -> list[JobEnvironment]:
    """Return what the user may choose; the default image is the first one of each group."""
    newest = [image for image in images.images if image.newest]
    newest.sort(key=lambda image: (not image.default, image.name))
    offered = [(image.name, f" in the image {image.title}") for image in newest]
    return [
        JobEnvironment(
            name=_name(group.name, image, several=len(groups) > 1),
            group=group.name,
            image=image,
            description=f"Runs{where}, charged to {group.name}",
            compute_types=tuple(_compute_types(group, devices)),
        )
        for group in groups
        for image, where in offered or [("", "")]
    ]


def named(environments: Iterable[JobEnvironment], name: str) -> JobEnvironment:
    """Return the environment with this name.

    Raises:
        InvalidInput: there is none; the user may have left a group meanwhile.
    """
    found = {each.name: each for each in environments}
    if name in found:
        return found[name]
    raise InvalidInput(
        f"There is no environment {name[:80]!r}."
        if found
        else "A job is charged to a group, and you are not in one: ask a teacher or administrator.",
        accepted=f"Choose one of: {', '.join(found)}." if found else "",
    )


def _name(group: str, image: str, *, several: bool) -> str:
    if not image:
        return group
    return f"{image} ({group})" if several else image


def _compute_types(group: GroupOut, devices: Sequence[DeviceOut]) -> Iterable[ComputeType]:
    most = most_devices(group)
    yield ComputeType(devices=0)
    for model in [None, *job_builder.model_choices([group.models], devices)]:
        there = sum(_usable(group, device) and model in {None, device.model} for device in devices)
        for number in range(1, min(most, there) + 1):
            if number <= _EACH_UP_TO or number.bit_count() == 1:
                yield ComputeType(devices=number, model=model)


def _usable(group: GroupOut, device: DeviceOut) -> bool:
    return device.state != "gone" and (group.models is None or device.model in group.models)
