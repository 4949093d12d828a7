"""Which builds may go: none that a course, an output or another image needs, and no newest one."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from . import labels
from .docker_cli import Docker, ListedImage


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """Of one build: ``why`` it stays, empty where it may go."""

    image: ListedImage
    why: str = ""


def fates(images: Sequence[ListedImage], needed: Mapping[str, str]) -> list[RetentionDecision]:
    """What becomes of each.

    Args:
        images: of one engine, the newest first.
        needed: reasons by reference, as the service gives them. A digest counts whatever name
            stands before it.
    """
    reasons = {reference.rpartition("@")[2]: why for reference, why in needed.items()}
    newest: dict[str, str] = {}
    for image in images:
        newest.setdefault(image.name, image.digest)
    kept = {i.digest for i in images if i.digest in reasons or newest[i.name] == i.digest}
    stood_on = _below(images, kept)
    found = []
    for image in images:
        why = reasons.get(image.digest, "")
        if not why and newest[image.name] == image.digest:
            why = f"It is the newest build of {image.name}."
        if not why and image.digest in stood_on:
            why = "An image that stays stands on it."
        found.append(RetentionDecision(image=image, why=why))
    return found


def _below(images: Sequence[ListedImage], kept: Collection[str]) -> set[str]:
    """What these stand on, all the way down."""
    base = {image.digest: image.labels.get(labels.BASE_DIGEST, "") for image in images}
    found: set[str] = set()
    reached = set(kept)
    while reached:
        reached = {base[digest] for digest in reached if base.get(digest)} - found
        found |= reached
    return found


def remove(docker: Docker, image: ListedImage) -> None:
    """Its layers go where no other image has them.

    By its digest and nothing else: a tag may belong to a newer build by now.

    Raises:
        ImageFailed: a container uses it, or somebody gave it a name outside of the catalogue.
    """
    docker.ask("image", "rm", image.digest)
