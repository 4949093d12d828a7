"""Build an image: run the engine's build, report its steps, write its log."""

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
_TAIL_LINES = 15
_STEP = re.compile(r"#(?P<number>\d+) \[(?:\S+ )?(?P<place>\d+/\d+)\] (?P<what>.+)")
_ENDED = re.compile(r"#(?P<number>\d+) (?P<how>DONE [\d.]+s|CACHED|ERROR.*)")
_OUTPUT = re.compile(r"#(?P<number>\d+) (?P<seconds>\d+)\.\d+ (?P<what>.*\S.*)")
_WIDTH = 70
_REPORT_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOrder:
    """The options of a build.

    Attributes:
        base: base image to use instead of the recipe's own; empty for the recipe's own.
        ca_bundle: certificates of a site behind an intercepting proxy; not stored in any layer.
        pip_config: a ``pip.conf`` with the site's package index; not stored in any layer.
        wheelhouse: a folder of wheels that are used in addition to the package index.
        network: network of the build steps; ``host`` also works on an engine without a bridge.
    """

    recipe: Recipe
    variant: str = ""
    base: str = ""
    ca_bundle: Path | None = None
    pip_config: Path | None = None
    wheelhouse: Path | None = None
    network: str = "host"
    arguments: tuple[str, ...] = ()


def build(
    docker: Docker, order: BuildOrder, log: Callable[[str], None], report: Callable[[str], None]
) -> ListedImage:
    """Build the image, and tag it ``carrel/NAME:latest`` and with the beginning of its digest.

    Args:
        log: receives every line of the log.
        report: receives the steps, as text.

    Raises:
        ImageFailed: the build failed; the message has the end of the log.
        InvalidInput: an option is invalid; nothing was built.
        Unavailable: the engine does not answer; nothing was built.
    """
    base_name, digest = _base_of(docker, order)
    tag = f"carrel/{order.recipe.name}:latest"
    progress = BuildProgress()
    with context(order.recipe, order.variant, order.wheelhouse) as folder:
        words = _command(order, base_name, digest, tag, folder)
        try:
            for line in docker.lines(words):
                log(line)
                for sentence in progress.feed(line):
                    report(sentence)
        except ImageFailed as error:
            raise ImageFailed(f"{order.recipe.name} was not built.\n{progress.end}") from error
    (built,) = docker.inspect([tag])
    # A permanent tag: without one, `docker image prune` would remove this build after the next one.
    docker.ask("tag", built.digest, f"carrel/{built.name}:{built.short.partition('@')[2]}")
    return built


def _base_of(docker: Docker, order: BuildOrder) -> tuple[str, str]:
    """Return the base image: its name for the Dockerfile, and its digest if known."""
    base = order.base or order.recipe.base
    tag = BOOTSTRAPPED if base == DEBIAN else f"carrel/{base}:latest"
    if "/" not in base and docker.has(tag):
        return tag, docker.inspect([tag])[0].digest
    if base in recipes.names():
        raise InvalidInput(
            f"{order.recipe.name} is built on {base}, which the engine does not have.",
            accepted=f"Run first: carrel images build {base}.",
        )
    return (PULLED if base == DEBIAN else base), ""


def _command(order: BuildOrder, base_name: str, digest: str, tag: str, folder: Path) -> list[str]:
    words = ["build", "--progress", "plain", "--network", order.network, "--tag", tag]
    words += ["--build-arg", f"FROM={base_name}"]
    for argument in order.arguments:
        words += ["--build-arg", argument]
    for name, value in _labels(order, base_name, digest).items():
        words += ["--label", f"{name}={value}"]
    for name, path in (("ca", order.ca_bundle), ("pip", order.pip_config)):
        if path is not None:
            if not path.is_file():
                raise InvalidInput(f"There is no file {path}.", accepted="An existing file.")
            words += ["--secret", f"id={name},src={path.resolve()}"]
    return [*words, str(folder)]


def _labels(order: BuildOrder, base_name: str, digest: str) -> dict[str, str]:
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
        labels.BASE_NAME: base_name,
        labels.BASE_DIGEST: digest,
    }


@dataclass(slots=True)
class BuildProgress:
    """Follows BuildKit's plain log.

    Reports the start and end of every step, and every ten seconds the last output of a long step.
    """

    _steps: dict[str, str] = field(default_factory=dict)
    _reported: dict[str, int] = field(default_factory=dict)
    """The number of intervals that were reported, by step."""
    _tail: deque[str] = field(default_factory=lambda: deque(maxlen=_TAIL_LINES))

    def feed(self, line: str) -> Iterator[str]:
        if line.strip():
            self._tail.append(line)
        started = _STEP.fullmatch(line)
        if started and started["number"] not in self._steps:
            self._steps[started["number"]] = started["place"]
            yield f"[{started['place']}] {_short(started['what'])}"
        elif (ended := _ENDED.fullmatch(line)) and ended["number"] in self._steps:
            place = self._steps.pop(ended["number"])
            how = ended["how"]
            result = how.replace("DONE", "done in").replace("CACHED", "cached")
            yield f"[{place}] {result}"
        elif (output := _OUTPUT.fullmatch(line)) and output["number"] in self._steps:
            number, seconds = output["number"], int(output["seconds"])
            if seconds // _REPORT_SECONDS > self._reported.get(number, 0):
                self._reported[number] = seconds // _REPORT_SECONDS
                yield f"[{self._steps[number]}] {seconds} s: {_short(output['what'])}"

    @property
    def end(self) -> str:
        return "\n".join(self._tail)


def _short(text: str) -> str:
    words = " ".join(text.split())
    return words if len(words) <= _WIDTH else f"{words[: _WIDTH - 1]}…"


def log_file(name: str, now: float | None = None) -> Path:
    """Return the default path of a build's log."""
    folder = Path.home() / ".cache" / "carrel" / "builds"
    folder.mkdir(parents=True, exist_ok=True)
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime(now))
    return folder / f"{name}-{stamp}.log"
