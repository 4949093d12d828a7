"""The images of the catalogue as engines list them: by their labels, by digest over all nodes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

from ....hub.errors import BackendFailed
from ....hub.records.images import Image, Reference, newest
from ....hub.records.json_value import Json
from ....images import labels
from .client import DockerClient, ImageMissing

Listed = Mapping[str, Json]
"""What an engine says of one image: ``Id``, ``Created``, ``Size`` and ``Labels``."""
TOOLS: Final = "base"
USUAL: Final = ("datascience", "base")
"""Where a site names no image for those who choose none: the first of these that is built."""


def images_of(listing: Iterable[tuple[str, Iterable[Listed]]], default: str) -> tuple[Image, ...]:
    """Every build by name and the newest first, from each node's own list.

    An image that is not labelled as one of the catalogue, or has a name that nobody could write
    in a reference, is left out.

    Args:
        default: name of the image of who chooses none; empty for the usual one.
    """
    found: dict[str, Image] = {}
    for node, images in listing:
        for listed in images:
            image = _image(listed)
            if image is None:
                continue
            known = found.get(image.digest)
            nodes = (*(known.nodes if known else ()), node)
            found[image.digest] = replace(known or image, nodes=nodes)
    names = {image.name for image in found.values()}
    default = default or next((name for name in USUAL if name in names), "")
    marked = (replace(image, default=image.name == default) for image in found.values())
    order = sorted(marked, key=lambda image: (-image.built_at, image.digest))
    return tuple(sorted(order, key=lambda image: image.name))


def images_on(engine: DockerClient, default: str) -> tuple[Image, ...]:
    """Those of one engine.

    Raises:
        Unavailable: it does not answer.
    """
    return images_of([(engine.node, engine.images(labels.NAME))], default)


def digest_of(images: tuple[Image, ...], wanted: str, *, node: str) -> str:
    """The id of the image that a reference names there; the default's where it is empty.

    Raises:
        ImageMissing: it is not there.
    """
    if not wanted:
        return _default_of(images, node)
    asked = Reference.read(wanted)
    if asked is None:
        raise BackendFailed(f"{wanted!r} names no image.")
    if asked.digest:
        found = next((image for image in images if image.digest == asked.digest), None)
    else:
        found = newest(images, asked.name)
    if found is None:
        raise ImageMissing(
            f"The image {wanted} is not on {node}.",
            accepted="An administrator can build it there: carrel images build.",
        )
    return found.digest


def tools(images: tuple[Image, ...], *, node: str) -> str:
    """The id of the image whose programs the service itself uses there.

    That is base: what a site gives to those who choose none may lack them, as grading does.

    Raises:
        ImageMissing: there is none.
    """
    found = newest(images, TOOLS)
    return found.digest if found else _default_of(images, node)


def _default_of(images: tuple[Image, ...], node: str) -> str:
    name = next((image.name for image in images if image.default), "")
    found = newest(images, name)
    if found is None:
        raise ImageMissing(
            f"The image of those who choose none is not on {node}.",
            accepted="An administrator can build the first one there: carrel images build base.",
        )
    return found.digest


def _image(listed: Listed) -> Image | None:
    said = listed.get("Labels")
    given = said if isinstance(said, Mapping) else {}
    marks = {label: text for label, text in given.items() if isinstance(text, str)}
    digest, name = listed.get("Id"), marks.get(labels.NAME, "")
    asked = Reference.read(f"{name}@{digest}")
    if not isinstance(digest, str) or asked is None or asked.digest != digest:
        return None
    return Image(
        name=name,
        digest=digest,
        title=marks.get(labels.TITLE, name),
        summary=marks.get(labels.SUMMARY, ""),
        size_bytes=int(_number(listed.get("Size"))),
        built_at=_number(listed.get("Created")),
        kernels=labels.words(marks.get(labels.KERNELS, "")),
        packages=labels.words(marks.get(labels.PACKAGES, ""), ","),
    )


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
