"""Read the images of the catalogue from engines by their labels, and merge them by digest."""

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
"""An image as an engine lists it: ``Id``, ``Created``, ``Size`` and ``Labels``."""
TOOLS_IMAGE: Final = "base"
USUAL_DEFAULTS: Final = ("datascience", "base")
"""The default image of a site that sets none is the first of these that is built."""


def images_of(listing: Iterable[tuple[str, Iterable[Listed]]], default: str) -> tuple[Image, ...]:
    """Return all builds from the lists of all nodes, sorted by name and the newest first.

    Images without the labels of the catalogue, or with a name that no reference can contain, are
    left out.

    Args:
        default: name of the default image; empty for the first of ``USUAL_DEFAULTS``.
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
    default = default or next((name for name in USUAL_DEFAULTS if name in names), "")
    marked = (replace(image, default=image.name == default) for image in found.values())
    order = sorted(marked, key=lambda image: (-image.built_at, image.digest))
    return tuple(sorted(order, key=lambda image: image.name))


def images_on(engine: DockerClient, default: str) -> tuple[Image, ...]:
    """Return the images of one engine.

    Raises:
        Unavailable: the engine does not answer.
    """
    return images_of([(engine.node, engine.images(labels.NAME))], default)


def digest_of(images: tuple[Image, ...], wanted: str, *, node: str) -> str:
    """Return the id of the referenced image; of the default image if ``wanted`` is empty.

    Raises:
        ImageMissing: the node does not have it.
    """
    if not wanted:
        return _default_of(images, node)
    reference = Reference.read(wanted)
    if reference is None:
        raise BackendFailed(f"{wanted!r} is not an image reference.")
    if reference.digest:
        found = next((image for image in images if image.digest == reference.digest), None)
    else:
        found = newest(images, reference.name)
    if found is None:
        raise ImageMissing(
            f"The image {wanted} is not on {node}.",
            accepted="An administrator can build it there: carrel images build.",
        )
    return found.digest


def tools_image(images: tuple[Image, ...], *, node: str) -> str:
    """Return the id of the image whose programs the service itself uses.

    It is the base image, because a site's default image may lack them (the grading image does).

    Raises:
        ImageMissing: the node has neither the base image nor the default image.
    """
    found = newest(images, TOOLS_IMAGE)
    return found.digest if found else _default_of(images, node)


def _default_of(images: tuple[Image, ...], node: str) -> str:
    name = next((image.name for image in images if image.default), "")
    found = newest(images, name)
    if found is None:
        raise ImageMissing(
            f"The default image is not on {node}.",
            accepted="An administrator can build the first image there: carrel images build base.",
        )
    return found.digest


def _image(listed: Listed) -> Image | None:
    value = listed.get("Labels")
    own = value if isinstance(value, Mapping) else {}
    texts = {label: text for label, text in own.items() if isinstance(text, str)}
    digest, name = listed.get("Id"), texts.get(labels.NAME, "")
    reference = Reference.read(f"{name}@{digest}")
    if not isinstance(digest, str) or reference is None or reference.digest != digest:
        return None
    return Image(
        name=name,
        digest=digest,
        title=texts.get(labels.TITLE, name),
        summary=texts.get(labels.SUMMARY, ""),
        size_bytes=int(_number(listed.get("Size"))),
        built_at=_number(listed.get("Created")),
        kernels=labels.words(texts.get(labels.KERNELS, "")),
        packages=labels.words(texts.get(labels.PACKAGES, ""), ","),
    )


def _number(value: Json) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
