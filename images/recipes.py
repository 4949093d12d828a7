"""Recipes of images: folders with a Dockerfile, an ``image.toml`` and lock files.

Carrel's own recipes are beside this module. A site can keep recipes in any folder and use its path
instead of an image's name: ``carrel images build ./our-image``.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ..hub.errors import InvalidInput, NotFound

HERE: Final = Path(__file__).parent
DEBIAN: Final = "debian"
"""The base of the first image."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*])?==(?P<version>[^ ;\\]+)", re.MULTILINE)
_TEXTS = ("title", "summary", "from")
_LISTS = ("kernels", "packages", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The recipe of an image.

    Attributes:
        base: name of another image of the catalogue, ``debian``, or any reference.
        packages: the main packages; their versions are those of the lock files.
        variants: names of lock files ``requirements-VARIANT.txt``, the default first; without
            variants the lock file is ``requirements.txt``.
    """

    name: str
    folder: Path
    title: str
    summary: str
    base: str
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Recipe:
        """Read a recipe.

        Raises:
            InvalidInput: the folder does not contain a valid recipe.
        """
        name = folder.resolve().name
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name!r} is not a valid image name.",
                accepted="Use lower-case letters, digits, dots, underscores and hyphens.",
            )
        if not folder.is_dir():
            raise InvalidInput(
                f"There is no folder {folder}.",
                accepted="A folder with a Dockerfile, an image.toml and a requirements.txt.",
            )
        for needed in ("Dockerfile", "image.toml"):
            if not (folder / needed).is_file():
                raise InvalidInput(
                    f"{folder} has no {needed}.",
                    accepted="A folder with a Dockerfile, an image.toml and a requirements.txt.",
                )
        try:
            table = tomllib.loads((folder / "image.toml").read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{folder / 'image.toml'} cannot be read: {error}.") from None
        texts = {key: table.pop(key, None) for key in _TEXTS}
        lists = {key: table.pop(key, []) for key in _LISTS}
        valid = all(isinstance(text, str) and text for text in texts.values()) and all(
            isinstance(words, list) and all(isinstance(word, str) for word in words)
            for words in lists.values()
        )
        if table or not valid:
            raise InvalidInput(
                f"{folder / 'image.toml'} does not describe an image.",
                accepted=f"The texts {', '.join(_TEXTS)}; the lists {', '.join(_LISTS)}.",
            )
        return cls(
            name=name,
            folder=folder,
            title=texts["title"],
            summary=texts["summary"],
            base=texts["from"],
            **{key: tuple(words) for key, words in lists.items()},
        )

    def lock(self, variant: str = "") -> Path:
        """Return the lock file of a variant, by default the first one.

        Raises:
            InvalidInput: there is no such variant.
        """
        if variant and variant not in self.variants:
            known = f"One of: {', '.join(self.variants)}." if self.variants else "Omit it."
            raise InvalidInput(f"{self.name} has no variant {variant!r}.", accepted=known)
        chosen = variant or next(iter(self.variants), "")
        return self.folder / (f"requirements-{chosen}.txt" if chosen else "requirements.txt")


def names() -> tuple[str, ...]:
    """Return the names of Carrel's recipes, base images first."""
    found = {path.parent.name: find(path.parent.name) for path in HERE.glob("*/image.toml")}
    return tuple(sorted(found, key=lambda name: (len(chain(found[name])), name)))


def find(name: str) -> Recipe:
    """Return a recipe by name, or by the path of its folder.

    Raises:
        NotFound: there is no such recipe; the message lists the existing ones.
        InvalidInput: the folder does not contain a valid recipe.
    """
    if "/" in name or name.startswith("."):
        return Recipe.read(Path(name))
    if not (HERE / name / "image.toml").is_file() or not _NAME.fullmatch(name):
        known = ", ".join(sorted(path.parent.name for path in HERE.glob("*/image.toml")))
        raise NotFound(
            f"Carrel has no recipe for an image {name!r}.",
            accepted=f"One of: {known}; or the path of a folder with one, such as ./{name}.",
        )
    return Recipe.read(HERE / name)


def chain(recipe: Recipe) -> tuple[Recipe, ...]:
    """Return the recipes of its base images, the lowest first, and the recipe itself.

    Raises:
        InvalidInput: the image is its own base.
    """
    bases, current = [recipe], recipe
    while (HERE / current.base / "image.toml").is_file() and _NAME.fullmatch(current.base):
        current = find(current.base)
        if any(current.name == base.name for base in bases):
            raise InvalidInput(f"The image {recipe.name} is its own base image.")
        bases.append(current)
    return tuple(reversed(bases))


def locked(recipe: Recipe, variant: str = "") -> dict[str, str]:
    """Return the versions of the packages that the image must have, by normalised name."""
    versions: dict[str, str] = {}
    for lock in _locks(recipe, variant):
        versions |= {
            normalised(pin["name"]): pin["version"]
            for pin in _PIN.finditer(lock.read_text(encoding="utf-8"))
        }
    return versions


def fingerprint(recipe: Recipe, variant: str = "") -> str:
    """Return the SHA-256 of all lock files of the image: equal values mean equal packages."""
    digest = hashlib.sha256()
    for lock in _locks(recipe, variant):
        digest.update(hashlib.sha256(lock.read_bytes()).digest())
    return digest.hexdigest()


def _locks(recipe: Recipe, variant: str) -> list[Path]:
    *bases, _ = chain(recipe)
    return [*(base.lock() for base in bases), recipe.lock(variant)]


def normalised(name: str) -> str:
    """Normalise a package name as in PEP 503."""
    return re.sub(r"[-_.]+", "-", name).lower()
