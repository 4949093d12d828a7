"""Lists of packages by image, from folders that jobs can write."""

from __future__ import annotations

import os
from pathlib import Path

from carrel.spawners.docker.nodes.learned_packages import LearnedPackages

IMAGE = "sha256:0011"


def learned(folder: Path, attempt: Path) -> list[str]:
    known = LearnedPackages(folder=folder / "packages")
    known.learn(IMAGE, attempt)
    return known.of(IMAGE).splitlines()


def test_the_packages_used_last_come_first_and_are_kept(tmp_path: Path) -> None:
    first, second = tmp_path / "1", tmp_path / "2"
    for folder, name, text in (
        (first, "packages.7", "numpy linalg\npandas\n"),
        (second, "packages.12", "torch nn\nnumpy fft\n"),
    ):
        folder.mkdir()
        (folder / name).write_text(text)
    assert learned(tmp_path, first) == ["numpy linalg", "pandas"]
    assert learned(tmp_path, second) == ["torch nn", "numpy fft linalg", "pandas"]
    assert LearnedPackages(folder=tmp_path / "packages").of("sha256:22") == ""


def test_whatever_a_job_puts_there_is_a_short_list_of_names(tmp_path: Path) -> None:
    attempt, secret = tmp_path / "attempt", tmp_path / "secret"
    attempt.mkdir()
    secret.write_text("secret\n")
    (attempt / "packages.1").symlink_to(secret)
    (attempt / "packages.2").mkdir()
    os.mkfifo(attempt / "packages.3")
    (attempt / "packages.4").write_bytes(b"\xff\n../x a;b\n" + b"numpy linalg\n")
    (attempt / "packages.x").write_text("other\n")
    (attempt / "packages.5").write_text("".join(f"{'p' * 3000}{n}\n" for n in range(50)))
    lines = learned(tmp_path, attempt)
    assert {line[:3] for line in lines} <= {"num", "ppp"}
    assert 10 < len(lines) < 40
    assert learned(tmp_path, tmp_path / "absent") == lines
