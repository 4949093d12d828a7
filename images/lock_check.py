"""Whether an image holds what its lock files say: the same lock gives the same package set."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from . import labels, recipes
from .docker_cli import Docker, ListedImage
from .recipes import Recipe

# Of the environment itself, or made by the build: no lock names them.
_OWN: Final = frozenset({"carrel", "pip", "setuptools", "wheel"})
_ASK: Final = (
    "import importlib.metadata as m, json; "
    "print(json.dumps({d.metadata['Name']: d.version for d in m.distributions()}))"
)
_PYTHON: Final = "/opt/carrel/bin/python"


@dataclass(frozen=True, slots=True, kw_only=True)
class LockCheck:
    """What is wrong with one build; nothing where it is as locked.

    Attributes:
        same_lock: it was built from the lock files that there are now.
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
            return [f"{name} holds the {self.packages} packages of its lock, and no others."]
        said = [] if self.same_lock else [f"{name} was built from other lock files."]
        for what, found in (
            ("lacks", self.missing),
            ("has other versions", self.different),
            ("has more than its lock", self.extra),
        ):
            if found:
                said.append(f"{name} {what}: {', '.join(found)}.")
        return said


def verify(docker: Docker, image: ListedImage, recipe: Recipe) -> LockCheck:
    """Ask a container of the image, without a network, what is installed in it.

    Raises:
        ImageFailed: it cannot even say that.
    """
    words = ["run", "--rm", "--network", "none", "--entrypoint", _PYTHON, image.digest]
    inside: dict[str, str] = json.loads(docker.ask(*words, "-I", "-c", _ASK))
    variant = image.labels.get(labels.VARIANT, "")
    same = image.labels.get(labels.LOCK) == recipes.fingerprint(recipe, variant)
    return compared(image, recipes.locked(recipe, variant), inside, same_lock=same)


def compared(
    image: ListedImage, locked: Mapping[str, str], inside: Mapping[str, str], *, same_lock: bool
) -> LockCheck:
    """The package set of an image beside that of its lock."""
    found = {recipes.normalised(name): version for name, version in inside.items()}
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
        extra=_named(found, (name for name in found if name not in {*locked, *_OWN})),
    )


def _named(versions: Mapping[str, str], names: Iterable[str]) -> tuple[str, ...]:
    return tuple(f"{name} {versions[name]}" for name in sorted(names))
