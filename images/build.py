"""One build: what the engine is told, its progress in words, its log in a file."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from .. import __version__
from ..hub.errors import ImageFailed, InvalidInput
from . import labels, recipes
from .build_context import context
from .docker_cli import Docker, ListedImage
from .recipes import DEBIAN, Recipe

BOOTSTRAPPED = "carrel/debian:bookworm"
PULLED = "debian:bookworm-slim"
_TAIL = 15
_STEP = re.compile(r"#(?P<number>\d+) \[(?:\S+ )?(?P<place>\d+/\d+)\] (?P<what>.+)")
_ENDED = re.compile(r"#(?P<number>\d+) (?P<how>DONE [\d.]+s|CACHED|ERROR.*)")
_WITHIN = re.compile(r"#(?P<number>\d+) (?P<seconds>\d+)\.\d+ (?P<what>.*\S.*)")
_WIDTH = 70
_OFTEN = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """What to build, and with what.

    Attributes:
        stands_on: another image than the recipe's own to stand on.
        ca_bundle: certificates of a site behind a proxy that looks into TLS; in no layer.
        pip_config: a ``pip.conf`` with the site's own package index; in no layer.
        wheelhouse: a folder of wheels that are looked at beside the package index.
        network: of the steps: ``host`` also works on an engine without a bridge.
    """

    recipe: Recipe
    variant: str = ""
    stands_on: str = ""
    ca_bundle: Path | None = None
    pip_config: Path | None = None
    wheelhouse: Path | None = None
    network: str = "host"
    arguments: tuple[str, ...] = ()


def build(
    docker: Docker, order: BuildOrder, log: Callable[[str], None], tell: Callable[[str], None]
) -> ListedImage:
    """Build it, and tag it ``carrel/NAME:latest`` and with the beginning of its digest.

    Args:
        log: gets every line; ``tell`` gets the steps, in words.

    Raises:
        ImageFailed: with the end of the log.
        InvalidInput, Unavailable: nothing was built.
    """
    below, digest = _foundation(docker, order)
    tag = f"carrel/{order.recipe.name}:latest"
    progress = BuildProgress()
    with context(order.recipe, order.variant, order.wheelhouse) as folder:
        words = _words(order, below, digest, tag, folder)
        try:
            for line in docker.lines(words):
                log(line)
                for sentence in progress.feed(line):
                    tell(sentence)
        except ImageFailed as error:
            raise ImageFailed(f"{order.recipe.name} was not built.\n{progress.end}") from error
    (built,) = docker.inspect([tag])
    # A tag for good: without one, a later build would leave this one to `docker image prune`.
    docker.ask("tag", built.digest, f"carrel/{built.name}:{built.short.partition('@')[2]}")
    return built


def _foundation(docker: Docker, order: BuildOrder) -> tuple[str, str]:
    """The image that this one stands on: how a Dockerfile names it, and its digest if known."""
    wanted = order.stands_on or order.recipe.stands_on
    tag = BOOTSTRAPPED if wanted == DEBIAN else f"carrel/{wanted}:latest"
    if "/" not in wanted and docker.has(tag):
        return tag, docker.inspect([tag])[0].digest
    if wanted in recipes.names():
        raise InvalidInput(
            f"{order.recipe.name} stands on {wanted}, and the engine does not have it.",
            accepted=f"First: carrel images build {wanted}.",
        )
    return (PULLED if wanted == DEBIAN else wanted), ""


def _words(order: BuildOrder, below: str, digest: str, tag: str, folder: Path) -> list[str]:
    words = ["build", "--progress", "plain", "--network", order.network, "--tag", tag]
    words += ["--build-arg", f"FROM={below}"]
    for argument in order.arguments:
        words += ["--build-arg", argument]
    for name, value in _marks(order, below, digest).items():
        words += ["--label", f"{name}={value}"]
    for name, path in (("ca", order.ca_bundle), ("pip", order.pip_config)):
        if path is not None:
            if not path.is_file():
                raise InvalidInput(f"There is no file {path}.", accepted="An existing file.")
            words += ["--secret", f"id={name},src={path.resolve()}"]
    return [*words, str(folder)]


def _marks(order: BuildOrder, below: str, digest: str) -> dict[str, str]:
    recipe = order.recipe
    versions = recipes.locked(recipe, order.variant)
    listed = ((name, versions.get(recipes.normalised(name))) for name in recipe.packages)
    title = f"{recipe.title} ({order.variant})" if order.variant else recipe.title
    return {
        labels.NAME: recipe.name,
        labels.KERNELS: " ".join(recipe.kernels),
        labels.PACKAGES: ", ".join(f"{name} {version}" for name, version in listed if version),
        labels.LOCK: recipes.fingerprint(recipe, order.variant),
        labels.VARIANT: order.variant,
        labels.TITLE: title,
        labels.SUMMARY: recipe.summary,
        labels.VERSION: __version__,
        labels.BASE_NAME: below,
        labels.BASE_DIGEST: digest,
    }


@dataclass(slots=True)
class BuildProgress:
    """Follows BuildKit's plain log: each step when it begins and ends, and in a long one every
    ten seconds what it is at."""

    _steps: dict[str, str] = field(default_factory=dict)
    _said: dict[str, int] = field(default_factory=dict)
    """How many tens of seconds of a step were told."""
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL))

    def feed(self, line: str) -> Iterator[str]:
        if line.strip():
            self._tail.append(line)
        begun = _STEP.fullmatch(line)
        if begun and begun["number"] not in self._steps:
            self._steps[begun["number"]] = begun["place"]
            yield f"[{begun['place']}] {_short(begun['what'])}"
        elif (ended := _ENDED.fullmatch(line)) and ended["number"] in self._steps:
            place = self._steps.pop(ended["number"])
            how = ended["how"]
            said = how.replace("DONE", "done in").replace("CACHED", "as it was built before")
            yield f"[{place}] {said}"
        elif (within := _WITHIN.fullmatch(line)) and within["number"] in self._steps:
            number, seconds = within["number"], int(within["seconds"])
            if seconds // _OFTEN > self._said.get(number, 0):
                self._said[number] = seconds // _OFTEN
                yield f"[{self._steps[number]}] {seconds} s: {_short(within['what'])}"

    @property
    def end(self) -> str:
        return "\n".join(self._tail)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _WIDTH else f"{words[: _WIDTH - 1]}…"


def log_file(name: str, now: float | None = None) -> Path:
    """Where the log of a build goes unless somebody says where."""
    folder = Path.home() / ".cache" / "carrel" / "builds"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return folder / f"{name}-{stamp}.log"
