"""What an image is made of: a folder with a Dockerfile, an ``image.toml`` and lock files.

Those of Carrel lie beside this module. A site makes its own in any folder, which is then named in
place of an image: ``carrel images build ./our-image``.
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
"""Stands for what the first image is made from."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,62}[a-z0-9])?")
_PIN = re.compile(r"^(?P<name>[A-Za-z0-9._-]+)(?:\[[^]]*])?==(?P<version>[^ ;\\]+)", re.MULTILINE)
_TEXTS = ("title", "summary", "from")
_LISTS = ("kernels", "packages", "variants")


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """One image before it is built.

    Attributes:
        stands_on: name of another image of the catalogue, ``debian``, or any reference.
        packages: the ones that people choose it by; their versions are those of the locks.
        variants: names of lock files ``requirements-VARIANT.txt``, the usual one first; without
            any the lock is ``requirements.txt``.
    """

    name: str
    folder: Path
    title: str
    summary: str
    stands_on: str
    kernels: tuple[str, ...] = ()
    packages: tuple[str, ...] = ()
    variants: tuple[str, ...] = ()

    @classmethod
    def read(cls, folder: Path) -> Recipe:
        """Raises InvalidInput where it is none."""
        name = folder.resolve().name
        if not _NAME.fullmatch(name):
            raise InvalidInput(
                f"{name!r} is not a name that an image can have.",
                accepted="Lower-case letters, digits, dots, underscores and hyphens.",
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
            said = tomllib.loads((folder / "image.toml").read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InvalidInput(f"{folder / 'image.toml'} cannot be read: {error}.") from None
        texts = {key: said.pop(key, None) for key in _TEXTS}
        lists = {key: said.pop(key, []) for key in _LISTS}
        good = all(isinstance(text, str) and text for text in texts.values()) and all(
            isinstance(each, list) and all(isinstance(word, str) for word in each)
            for each in lists.values()
        )
        if said or not good:
            raise InvalidInput(
                f"{folder / 'image.toml'} does not describe an image.",
                accepted=f"The texts {', '.join(_TEXTS)}; the lists {', '.join(_LISTS)}.",
            )
        return cls(
            name=name,
            folder=folder,
            title=texts["title"],
            summary=texts["summary"],
            stands_on=texts["from"],
            **{key: tuple(each) for key, each in lists.items()},
        )

    def lock(self, variant: str = "") -> Path:
        """The lock file of a variant, or of the usual one.

        Raises:
            InvalidInput: there is no such variant.
        """
        if variant and variant not in self.variants:
            known = f"One of: {', '.join(self.variants)}." if self.variants else "Leave it out."
            raise InvalidInput(f"{self.name} has no variant {variant!r}.", accepted=known)
        chosen = variant or next(iter(self.variants), "")
        return self.folder / (f"requirements-{chosen}.txt" if chosen else "requirements.txt")


def names() -> tuple[str, ...]:
    """Those of Carrel, in the order in which they stand on each other."""
    found = {path.parent.name: find(path.parent.name) for path in HERE.glob("*/image.toml")}
    return tuple(sorted(found, key=lambda name: (len(chain(found[name])), name)))


def find(name: str) -> Recipe:
    """Of a name, or of a folder that is written as a path.

    Raises:
        NotFound: there is none; the text lists those there are.
        InvalidInput: the folder is no recipe.
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
    """What it stands on, the lowest first, and itself; only images of Carrel are known below.

    Raises:
        InvalidInput: it stands on itself.
    """
    below, above = [recipe], recipe
    while (HERE / above.stands_on / "image.toml").is_file() and _NAME.fullmatch(above.stands_on):
        above = find(above.stands_on)
        if any(above.name == each.name for each in below):
            raise InvalidInput(f"The image {recipe.name} stands on itself.")
        below.append(above)
    return tuple(reversed(below))


def locked(recipe: Recipe, variant: str = "") -> dict[str, str]:
    """Every package that the image must have, by its normalised name, with its version."""
    found: dict[str, str] = {}
    for each in _locks(recipe, variant):
        found |= {
            normalised(pin["name"]): pin["version"]
            for pin in _PIN.finditer(each.read_text(encoding="utf-8"))
        }
    return found


def fingerprint(recipe: Recipe, variant: str = "") -> str:
    """SHA-256 of all its lock files: the same lock gives the same packages."""
    digest = hashlib.sha256()
    for each in _locks(recipe, variant):
        digest.update(hashlib.sha256(each.read_bytes()).digest())
    return digest.hexdigest()


def _locks(recipe: Recipe, variant: str) -> list[Path]:
    *below, _ = chain(recipe)
    return [*(each.lock() for each in below), recipe.lock(variant)]


def normalised(name: str) -> str:
    """As PEP 503 has it."""
    return re.sub(r"[-_.]+", "-", name).lower()
