"""Check that an image contains the packages of its lock files, and no others."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from . import labels, recipes
from .docker_cli import Docker, ListedImage
from .recipes import Recipe

# Part of the environment or created by the build: not in lock files.
_NOT_LOCKED: Final = frozenset({"carrel", "pip", "setuptools", "wheel"})
_LIST_SCRIPT: Final = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
)
_PYTHON: Final = "/opt/carrel/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCheck:
    """The differences between a build and its lock files.

    Attributes:
        same_lock: it was built from the current lock files.
    """

    image: ListedImage
    same_lock: bool
    packages: int
    missing: tuple[str, ...] = ()
    different: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()

    @property
    def good(self) -> bool:
        return self.same_lock and not (self.missing or self.different or self.extra)

    def sentences(self) -> list[str]:
        name = self.image.short
        if self.good:
            return [f"{name} has exactly the {self.packages} packages of its lock files."]
        problems = [] if self.same_lock else [f"{name} was built from other lock files."]
        for what, found in (
            ("lacks", self.missing),
            ("has other versions", self.different),
            ("has packages that are not in its lock files", self.extra),
        ):
            if found:
                problems.append(f"{name} {what}: {', '.join(found)}.")
        return problems


def verify(docker: Docker, image: ListedImage, recipe: Recipe) -> LockCheck:
    """Compare the installed packages, listed in a container without a network, with the lock files.

    Raises:
        ImageFailed: the packages could not be listed.
    """
    words = ["run", "--rm", "--network", "none", "--entrypoint", _PYTHON, image.digest]
    installed: dict[str, str] = json.loads(docker.ask(*words, "-I", "-c", _LIST_SCRIPT))
    variant = image.labels.get(labels.VARIANT, "")
    same = image.labels.get(labels.LOCK) == recipes.fingerprint(recipe, variant)
    return compare(image, recipes.locked(recipe, variant), installed, same_lock=same)


def compare(
    image: ListedImage, locked: Mapping[str, str], installed: Mapping[str, str], *, same_lock: bool
) -> LockCheck:
    """Compare the packages of an image with those of its lock files."""
    found = {recipes.normalised(name): version for name, version in installed.items()}
    return LockCheck(
        image=image,
        same_lock=same_lock,
        packages=len(locked),
        missing=_named(locked, (name for name in locked if name not in found)),
        different=tuple(
            f"{name} {found[name]} for {locked[name]}"
            for name in sorted(locked)
            if name in found and found[name] != locked[name]
        ),
        extra=_named(found, (name for name in found if name not in {*locked, *_NOT_LOCKED})),
    )


def _named(versions: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name} {versions[name]}" for name in sorted(names))
