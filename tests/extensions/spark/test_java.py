"""Which Java Spark would start, and sentences where there is none that it can use."""

from __future__ import annotations

from pathlib import Path

import pytest

from carrel.extensions.spark import java
from carrel.hub.errors import Unavailable

HELP = "Spark needs Java 17: use the image spark, or on Debian install openjdk-17-jre-headless."


def program(folder: Path, text: str, *, mode: int = 0o755) -> dict[str, str]:
    """Return an environment whose Java prints a text."""
    made = folder / "bin" / "java"
    made.parent.mkdir()
    made.write_text(f"#!/bin/sh\n{text}\n")
    made.chmod(mode)
    return {"JAVA_HOME": str(folder)}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_412"', 8),
        ('openjdk version "21" 2023-09-19', 21),
        ("Error: Could not create the Java Virtual Machine.", None),
    ],
)
def test_the_version_of_java_is_read(line: str, found: int | None) -> None:
    assert java.version(line) == found


@pytest.mark.parametrize("version", ["17.0.15", "21.0.2"])
def test_java_17_and_newer_are_accepted(version: str, tmp_path: Path) -> None:
    java.check(program(tmp_path, f"echo 'openjdk version \"{version}\"' >&2"))


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("echo 'java version \"1.8.0_412\"' >&2", "Java 8 ({path}) is too old."),
        ("echo 'java version \"11.0.2\"' >&2", "Java 11 ({path}) is too old."),
        ("echo 'no memory' >&2; exit 1", "Java ({path}) does not say its version."),
    ],
)
def test_a_java_that_spark_cannot_use_is_refused(text: str, sentence: str, tmp_path: Path) -> None:
    environment = program(tmp_path, text)
    with pytest.raises(Unavailable) as refused:
        java.check(environment)
    path = tmp_path / "bin" / "java"
    assert str(refused.value) == f"{sentence.format(path=path)} {HELP}"


@pytest.mark.parametrize("environment", [{"PATH": ""}, {"JAVA_HOME": "/nonexistent"}])
def test_a_missing_java_is_refused(environment: dict[str, str]) -> None:
    with pytest.raises(Unavailable) as refused:
        java.check(environment)
    assert str(refused.value) == f"Java was not found. {HELP}"
