"""The images of a Slurm cluster's containers, as carrel.toml lists them.

Slurm has no images of its own. The command in front of those of sessions and jobs (Apptainer,
Charliecloud, or an option of pyxis) contains ``{image}``, which becomes the source of the chosen
build.
"""

from __future__ import annotations

import hashlib
import threading
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from ...hub.errors import BackendFailed
from ...hub.interfaces.backend_settings import SlurmImage, SlurmOptions
from ...hub.records.images import Image
from ..local.kernelspecs import environment_kernels

PLACE: Final = "{image}"


def listed_images(slurm: SlurmOptions, nodes: Iterable[str]) -> tuple[Image, ...] | None:
    """Return the builds that users choose from; None on a cluster without images.

    Looks at the files and the kernels of Carrel's environment, perhaps on a network file system.

    Args:
        nodes: of the pool, which all have every build.
    """
    if not slurm.images:
        return None
    names, kernels = tuple(nodes), environment_kernels()
    return tuple(
        Image(
            name=image.name,
            digest=image.digest,
            title=image.title or image.name,
            summary="",
            size_bytes=_size(image),
            built_at=image.built_at,
            kernels=tuple(sorted(kernels.union(image.kernels))),
            nodes=names,
            default=image.name == slurm.images[0].name,
        )
        for image in sorted(slurm.images, key=lambda each: (each.name, -each.built_at))
    )


def with_image(slurm: SlurmOptions, reference: str) -> SlurmOptions:
    """Return the options with the source of a build in the place of ``{image}``.

    Reads a whole file at its first use, so that the digest is that of what runs.

    Args:
        reference: ``NAME@sha256:…``; empty for the newest build of the default image.

    Raises:
        BackendFailed: carrel.toml does not list the build, or its file is gone or has changed.
    """
    if not slurm.images:
        return slurm
    image = _found(slurm, reference)
    if problem := file_problem(image):
        raise BackendFailed(
            problem, accepted="An administrator can put the file back, or list the new build."
        )
    return _filled(slurm, image)


def with_default_image(slurm: SlurmOptions) -> SlurmOptions:
    """Return the options with the newest build of the default image, whose file is not read."""
    return _filled(slurm, _found(slurm, "")) if slurm.images else slurm


def file_problem(image: SlurmImage) -> str:
    """Return a sentence if the file of a build is gone or has changed; empty if all is well."""
    if not image.source.startswith("/"):
        return ""
    path = Path(image.source)
    try:
        found = path.stat()
        key = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)
        digest = _digest_of(image.source, key)
    except OSError as error:
        return f"The image {image.name} cannot be read: {error}."
    if digest != image.digest:
        return (
            f"The file {image.source} is not the build {image.digest[:19]} of {image.name}: its "
            f"digest is {digest}."
        )
    return ""


def _found(slurm: SlurmOptions, reference: str) -> SlurmImage:
    if not reference:
        name = slurm.images[0].name
        builds = [image for image in slurm.images if image.name == name]
        return max(builds, key=lambda image: image.built_at)
    for image in slurm.images:
        if image.reference == reference:
            return image
    raise BackendFailed(
        f"The image {reference} is not below [[slurm.images]] in carrel.toml.",
        accepted="An administrator can list it there again.",
    )


def _filled(slurm: SlurmOptions, image: SlurmImage) -> SlurmOptions:
    def filled(words: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(word.replace(PLACE, image.source) for word in words)

    return replace(slurm, container=filled(slurm.container), options=filled(slurm.options))


def _size(image: SlurmImage) -> int:
    """Return the size of a file in bytes; 0 for an address or a file that is gone."""
    try:
        return Path(image.source).stat().st_size if image.source.startswith("/") else 0
    except OSError:
        return 0


_locks: Final[defaultdict[str, threading.Lock]] = defaultdict(threading.Lock)


def _digest_of(path: str, state: tuple[int, ...]) -> str:
    """Return the digest of a file, which is read once for each of its states."""
    with _locks[path]:
        return _read_digest(path, state)


@lru_cache(maxsize=64)
def _read_digest(path: str, _state: tuple[int, ...]) -> str:
    with Path(path).open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
