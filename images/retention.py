"""Decide which builds may be removed: needed builds and the newest build of a name are kept."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from . import labels
from .docker_cli import Docker, ListedImage


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionDecision:
    """The decision on a build.

    Attributes:
        why: the reason to keep it; empty if it may be removed.
    """

    image: ListedImage
    why: str = ""


def retention_decisions(
    images: Sequence[ListedImage], needed: Mapping[str, str]
) -> list[RetentionDecision]:
    """Return the decision on every image.

    Args:
        images: of one engine, newest first.
        needed: reasons by reference, from the service; only the digest of a reference counts.
    """
    reasons = {reference.rpartition("@")[2]: why for reference, why in needed.items()}
    newest: dict[str, str] = {}
    for image in images:
        newest.setdefault(image.name, image.digest)
    kept = {i.digest for i in images if i.digest in reasons or newest[i.name] == i.digest}
    bases_in_use = _bases_of(images, kept)
    decisions = []
    for image in images:
        why = reasons.get(image.digest, "")
        if not why and newest[image.name] == image.digest:
            why = f"It is the newest build of {image.name}."
        if not why and image.digest in bases_in_use:
            why = "It is the base of an image that is kept."
        decisions.append(RetentionDecision(image=image, why=why))
    return decisions


def _bases_of(images: Sequence[ListedImage], kept: Collection[str]) -> set[str]:
    """Return all base images of these, recursively."""
    base = {image.digest: image.labels.get(labels.BASE_DIGEST, "") for image in images}
    found: set[str] = set()
    reached = set(kept)
    while reached:
        reached = {base[digest] for digest in reached if base.get(digest)} - found
        found |= reached
    return found


def remove(docker: Docker, image: ListedImage) -> None:
    """Remove an image; layers that other images use are kept.

    It is removed by digest, because its tag may belong to a newer build by now.

    Raises:
        ImageFailed: a container uses it, or it has a tag outside of the catalogue.
    """
    docker.ask("image", "rm", image.digest)
