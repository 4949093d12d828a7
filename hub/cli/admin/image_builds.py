"""``carrel images build|verify|prune|bootstrap``: commands on the Docker engine."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TextIO, TypeVar

import click

from ....images import build, recipes, retention
from ....images.debootstrap import bootstrap
from ....images.docker_cli import Docker, ListedImage
from ....images.lock_check import LockCheck, verify
from ...client import Client
from ...errors import ImageFailed, NotFound
from ...messages import units
from ..common import display
from ..common.client_command import ClientCommand, json_option, site_option
from ..common.notes import confirmed, note
from ..common.terminal import plain

F = TypeVar("F", bound=Callable[..., object])

_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
_FOLDER = click.Path(path_type=Path, exists=True, file_okay=False)


def docker_option(function: F) -> F:
    return click.option(
        "--docker-host",
        default="",
        metavar="URL",
        help="Engine to use instead of DOCKER_HOST: unix://…, ssh://… or tcp://….",
    )(function)


@click.command("build", cls=ClientCommand)
@click.argument("images", nargs=-1, required=True)
@click.option("--variant", default="", help="Variant of the lock files, such as cuda for torch.")
@click.option(
    "--from", "base", default="", metavar="IMAGE", help="Build on this base image instead."
)
@click.option(
    "--ca-bundle",
    type=_FILE,
    envvar=["CARREL_CA_BUNDLE", "PIP_CERT"],
    help="Certificates of a TLS-inspecting proxy; not stored in the image.  "
    "[env: CARREL_CA_BUNDLE, PIP_CERT]",
)
@click.option(
    "--pip-config",
    type=_FILE,
    help="A pip.conf with your own package index; not stored in the image.",
)
@click.option("--wheelhouse", type=_FOLDER, help="An additional folder of wheels.")
@click.option("--build-arg", "arguments", multiple=True, metavar="NAME=VALUE")
@click.option(
    "--network",
    type=click.Choice(["host", "default", "none"]),
    default="host",
    show_default=True,
    help="Network mode of the build steps.",
)
@click.option("--log", type=click.Path(path_type=Path, dir_okay=False), help="Path of the log.")
@click.option("--verbose", "-v", is_flag=True, help="Show the log during the build.")
@docker_option
@json_option
def build_command(
    *,
    images: tuple[str, ...],
    log: Path | None,
    verbose: bool,
    docker_host: str,
    as_json: bool,
    **chosen: object,
) -> None:
    """Build images, one after the other.

    IMAGE is base, datascience, jax, torch, spark, grading, or the path of a folder with a
    Dockerfile, an image.toml and a requirements.txt. Old builds are kept, so that pins stay valid.

    \b
    Examples:
      carrel images build base datascience
      carrel images build torch --variant cuda
      carrel images build base --ca-bundle /etc/ssl/certs/site.pem
      carrel images build ./our-image
    """
    docker, built = Docker(docker_host), []
    for name in images:
        recipe = recipes.find(name)
        order = build.BuildOrder(recipe=recipe, **chosen)  # type: ignore[arg-type]  # the options
        path = log or build.log_file(recipe.name)
        note(f"Building {recipe.name}; the log is {path}")
        with path.open("a", encoding="utf-8", buffering=1) as file:
            made = build.build(
                docker, order, _logger(file, also=verbose), _ignore if verbose else _print_step
            )
        built.append(made)
        if not as_json:
            click.echo(f"{made.reference}, {units.size(made.size_bytes)}")
    if as_json:
        display.as_json([_described(image) for image in built])


def _logger(file: TextIO, *, also: bool) -> Callable[[str], None]:
    def log(line: str) -> None:
        file.write(f"{line}\n")
        if also:
            note(plain(line))

    return log


def _print_step(text: str) -> None:
    note(f"  {plain(text)}")


def _ignore(text: str) -> None:
    """Print nothing, since the log is printed."""


@click.command("verify", cls=ClientCommand)
@click.argument("images", nargs=-1)
@docker_option
@json_option
def verify_command(*, images: tuple[str, ...], docker_host: str, as_json: bool) -> None:
    """Verify that images contain exactly the packages of their lock files.

    Without IMAGES the newest build of each is verified. The exit status is 1 for a difference.

    \b
    Examples:
      carrel images verify
      carrel images verify base ./our-image
    """
    docker = Docker(docker_host)
    newest: dict[str, ListedImage] = {}
    for image in docker.images():
        newest.setdefault(image.name, image)
    verdicts = [
        verify(docker, _built(newest, recipe.name), recipe)
        for recipe in map(recipes.find, images or [n for n in recipes.names() if n in newest])
    ]
    if not verdicts:
        raise NotFound("The engine has no image of Carrel.", accepted="carrel images build base")
    if as_json:
        display.as_json([_verdict(each) for each in verdicts])
    else:
        for sentence in (text for each in verdicts for text in each.sentences()):
            click.echo(sentence)
    sys.exit(0 if all(each.good for each in verdicts) else 1)


@click.command("prune", cls=ClientCommand)
@click.option("--dry-run", is_flag=True, help="Only show which builds would be removed.")
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@docker_option
@json_option
@site_option
def prune_command(
    *, dry_run: bool, yes: bool, docker_host: str, as_json: bool, site: str | None
) -> None:
    """Remove old builds that are not in use (administrators).

    A build is kept while a course has pinned it, a queued or running request uses it, or a stored
    output names it. The newest build of each image and its base are kept as well. Requires a
    running site: if it is not responding, nothing is removed.

    \b
    Examples:
      carrel images prune --dry-run
      carrel images prune --yes
    """
    docker = Docker(docker_host)
    # List the engine first: an image that is pinned meanwhile is then on both lists.
    images = docker.images()
    with Client.from_environment(site) as client:
        needed = {each.image: each.why for each in client.images_needed().needed}
    found = retention.retention_decisions(images, needed)
    unneeded = [decision.image for decision in found if not decision.why]
    if not as_json:
        for decision in sorted(found, key=lambda each: each.image.name):
            verdict = f"kept: {decision.why}" if decision.why else "can be removed."
            click.echo(f"{decision.image.short} {verdict}")
    if dry_run or not unneeded:
        removed: list[ListedImage] = []
    elif yes or confirmed(f"Remove {units.count(len(unneeded), 'build')}?"):
        removed = [image for image in unneeded if _removed(docker, image)]
    else:
        removed = []
    if as_json:
        kept = [{**_described(each.image), "why": each.why} for each in found if each.why]
        display.as_json({"removed": [_described(image) for image in removed], "kept": kept})
    elif dry_run:
        click.echo(f"{units.count(len(unneeded), 'build')} can be removed. Nothing was removed.")
    else:
        click.echo(f"Removed {units.count(len(removed), 'build')}.")


def _removed(docker: Docker, image: ListedImage) -> bool:
    try:
        retention.remove(docker, image)
    except ImageFailed as error:
        note(f"{image.short} kept: {error}")
        return False
    return True


@click.command("bootstrap", cls=ClientCommand)
@click.option("--mirror", default="", metavar="URL", help="Mirror of the Debian packages.")
@click.option("--again", is_flag=True, help="Replace an existing image.")
@docker_option
@json_option
def bootstrap_command(*, mirror: str, again: bool, docker_host: str, as_json: bool) -> None:
    """Create the first image from Debian packages, without access to a registry.

    Requires root and the program debootstrap. `carrel images build base` then uses it as its
    base instead of pulling Debian's image.

    \b
    Example:
      carrel images bootstrap && carrel images build base
    """
    docker = Docker(docker_host)
    made = again or not docker.has(build.BOOTSTRAPPED)
    if made:
        bootstrap(docker, mirror, _print_step)
    if as_json:
        display.as_json({"image": build.BOOTSTRAPPED, "made": made})
    else:
        click.echo(f"{build.BOOTSTRAPPED} is {'created' if made else 'unchanged'}.")


def _built(newest: dict[str, ListedImage], name: str) -> ListedImage:
    if name not in newest:
        raise NotFound(f"{name} is not built.", accepted=f"carrel images build {name}")
    return newest[name]


def _described(image: ListedImage) -> dict[str, object]:
    return {
        "name": image.name,
        "reference": image.reference,
        "size_bytes": image.size_bytes,
        "built": image.built,
    }


def _verdict(verdict: LockCheck) -> dict[str, object]:
    return {
        **_described(verdict.image),
        "good": verdict.good,
        "same_lock": verdict.same_lock,
        "packages": verdict.packages,
        "missing": list(verdict.missing),
        "different": list(verdict.different),
        "extra": list(verdict.extra),
    }
