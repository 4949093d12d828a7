"""Run the program ``docker`` for builds, and read its descriptions of images.

Builds use the program instead of the engine's API, because only the program supports secrets that
are not stored in layers. Newer versions without the plug-in ``buildx`` do not support them: the
first ``docker`` on PATH that does is used.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Final

from ..hub.errors import ImageFailed, Unavailable
from . import labels

_COMMAND_SECONDS = 60.0
_BUILDKIT: Final = {"DOCKER_BUILDKIT": "1", "BUILDKIT_PROGRESS": "plain"}


@dataclass(frozen=True)
class Docker:
    """Runs commands on one engine.

    Attributes:
        host: like DOCKER_HOST; empty for its value, or the default socket.
    """

    host: str = ""
    path: str = field(default_factory=lambda: os.environ.get("PATH", os.defpath))

    def images(self) -> list[ListedImage]:
        """Return the engine's images of the catalogue, newest first."""
        names = self.ask("image", "ls", "--quiet", "--no-trunc", *_labelled()).split()
        return sorted(
            self.inspect(dict.fromkeys(names)), key=lambda image: image.built, reverse=True
        )

    def inspect(self, names: Sequence[str] | Mapping[str, None]) -> list[ListedImage]:
        """Return these images.

        Raises:
            ImageFailed: an image does not exist.
        """
        if not names:
            return []
        found = json.loads(self.ask("image", "inspect", *names))
        return [ListedImage.read(item) for item in found]

    def has(self, reference: str) -> bool:
        """Whether the image of this name and tag exists."""
        return bool(self.ask("image", "ls", "--quiet", reference).strip())

    def ask(self, *words: str) -> str:
        """Run a command and return its output.

        Raises:
            Unavailable: the engine does not answer.
            ImageFailed: the command failed, or the program is missing.
        """
        try:
            done = subprocess.run(
                [self.program, *words],
                env=self.environment,
                capture_output=True,
                text=True,
                timeout=_COMMAND_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"The Docker engine{self._engine} does not answer.") from None
        if done.returncode:
            output = done.stderr.strip()
            if "Cannot connect" in output or "error during connect" in output:
                raise Unavailable(
                    f"The Docker engine{self._engine} does not answer.",
                    accepted="Start it, or name another one with --docker-host.",
                )
            raise ImageFailed(output[-1000:] or f"docker {words[0]} failed.")
        return done.stdout

    def lines(self, words: Sequence[str]) -> Iterator[str]:
        """Yield the output lines of a long command as they arrive.

        Raises:
            ImageFailed: the command failed.
        """
        with subprocess.Popen(
            [self.program, *words],
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as running:
            assert running.stdout is not None
            try:
                yield from (line.rstrip("\n") for line in running.stdout)
            except BaseException:
                running.terminate()
                raise
        if running.returncode:
            raise ImageFailed(f"docker {words[0]} ended with status {running.returncode}.")

    @property
    def environment(self) -> dict[str, str]:
        host = {"DOCKER_HOST": self.host} if self.host else {}
        return {**os.environ, **_BUILDKIT, **host}

    @cached_property
    def program(self) -> str:
        """The path of the program.

        Raises:
            ImageFailed: no ``docker`` on PATH can build with secrets.
        """
        found = [Path(folder) / "docker" for folder in self.path.split(os.pathsep) if folder]
        found = [program for program in dict.fromkeys(found) if os.access(program, os.X_OK)]
        for program in found:
            output = subprocess.run(
                [program, "build", "--help"],
                env={**os.environ, **_BUILDKIT},
                capture_output=True,
                text=True,
                check=False,
            )
            if output.returncode == 0 and "--secret" in output.stdout:
                return str(program)
        if not found:
            raise ImageFailed(
                "The program docker was not found on this machine.",
                accepted="Install it (on Debian: apt-get install docker.io).",
            )
        raise ImageFailed(
            f"{found[0]} does not support BuildKit.",
            accepted="Install its plug-in buildx, or Debian's docker.io.",
        )

    @property
    def _engine(self) -> str:
        host = self.host or os.environ.get("DOCKER_HOST", "")
        return f" at {host}" if host else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedImage:
    """An image in the engine's list."""

    digest: str
    name: str
    built: str
    size_bytes: int
    labels: Mapping[str, str]
    tags: tuple[str, ...]

    @property
    def reference(self) -> str:
        return f"{self.name}@{self.digest}"

    @property
    def short(self) -> str:
        """``torch@ab12cd34ef56``."""
        return f"{self.name}@{self.digest.removeprefix('sha256:')[:12]}"

    @classmethod
    def read(cls, output: Mapping[str, object]) -> ListedImage:
        config, tags, size = output.get("Config"), output.get("RepoTags"), output.get("Size")
        labelled = config.get("Labels") if isinstance(config, Mapping) else None
        texts = {str(key): str(text) for key, text in (labelled or {}).items()}
        return cls(
            digest=str(output["Id"]),
            name=texts.get(labels.NAME, ""),
            built=str(output.get("Created", "")),
            size_bytes=size if isinstance(size, int) else 0,
            labels=texts,
            tags=tuple(map(str, tags)) if isinstance(tags, list) else (),
        )


def _labelled() -> tuple[str, ...]:
    return "--filter", f"label={labels.NAME}"
