"""Which build of an image a job of Slurm runs in, and what is refused."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from carrel.hub.config.backend import slurm_options
from carrel.hub.config.site import SiteFile
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import BackendFailed, InvalidInput
from carrel.hub.interfaces.backend_settings import SlurmOptions
from carrel.spawners.slurm.container_images import (
    listed_images,
    with_default_image,
    with_image,
)

CONTAINER = 'container = ["apptainer", "exec", "--nv", "{image}"]'
OLD, NEW = "a" * 64, "b" * 64


def site(tmp_path: Path, text: str) -> SlurmOptions:
    (tmp_path / "carrel.toml").write_text(text)
    return slurm_options(SiteFile.load(StateFolder(root=tmp_path)))


def build(name: str, source: str, built: str, digest: str = "") -> str:
    more = f'digest = "{digest}"\n' if digest else ""
    return f'[[slurm.images]]\nname = "{name}"\nsource = "{source}"\nbuilt = {built}\n{more}'


@pytest.fixture
def options(tmp_path: Path) -> SlurmOptions:
    (tmp_path / "base.sif").write_bytes(b"an image")
    digest = hashlib.sha256(b"an image").hexdigest()
    return site(
        tmp_path,
        f"[slurm]\n{CONTAINER}\n"
        + build("torch", f"docker://r.example.org/torch@sha256:{OLD}", "2026-02-01")
        + build("torch", f"docker://r.example.org/torch@sha256:{NEW}", "2026-09-01")
        + build("base", f"{tmp_path}/base.sif", "2026-09-01", digest),
    )


def test_users_choose_among_builds_and_the_digest_leads_to_the_source(
    options: SlurmOptions,
) -> None:
    listed = listed_images(options, ["n1", "n2"]) or ()
    assert [(each.name, each.digest[7:8], each.default) for each in listed] == [
        ("base", hashlib.sha256(b"an image").hexdigest()[0], False),
        ("torch", "b", True),
        ("torch", "a", True),
    ]
    assert "python3" in listed[0].kernels
    assert listed[0].size_bytes == len(b"an image")
    assert with_image(options, f"torch@sha256:{OLD}").container[-1].endswith(OLD)
    assert with_image(options, "").container[-1].endswith(NEW)
    assert with_default_image(options).container[-1].endswith(NEW)
    assert with_image(options, listed[0].reference).container[-1].endswith("/base.sif")


def test_the_image_may_stand_in_an_option_of_sbatch(tmp_path: Path) -> None:
    found = site(
        tmp_path,
        '[slurm]\noptions = ["--container-image={image}"]\n'
        + build("base", f"r.example.org#base@sha256:{OLD}", "2026-02-01"),
    )
    assert with_image(found, "").options == (f"--container-image=r.example.org#base@sha256:{OLD}",)


def test_a_cluster_without_images_has_no_choice() -> None:
    plain = SlurmOptions(container=("apptainer", "exec", "/images/course.sif"))
    assert listed_images(plain, ["n1"]) is None
    assert with_image(plain, "") is plain


def test_a_file_that_was_replaced_is_refused(options: SlurmOptions, tmp_path: Path) -> None:
    reference = (listed_images(options, ()) or ())[0].reference
    with_image(options, reference)
    (tmp_path / "base.sif").write_bytes(b"another!")
    os.utime(tmp_path / "base.sif", (1, 1))
    with pytest.raises(BackendFailed, match="is not the build"):
        with_image(options, reference)
    (tmp_path / "base.sif").unlink()
    with pytest.raises(BackendFailed, match="cannot be read"):
        with_image(options, reference)


def test_a_build_that_is_no_longer_listed_is_refused(options: SlurmOptions) -> None:
    with pytest.raises(BackendFailed, match="not below"):
        with_image(options, f"torch@sha256:{'c' * 64}")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            f"{CONTAINER}\n" + build("base", "/srv/base.sif", "2026-01-01"),
            "sha256sum /srv/base.sif",
        ),
        (f"{CONTAINER}\n" + build("base", "base.sif", "2026-01-01"), "path of a file"),
        (
            f"{CONTAINER}\n" + build("base", "docker://r/base@sha256:abc", "2026-01-01"),
            "no digest of 64 digits",
        ),
        (
            f"{CONTAINER}\n" + build("base", f"docker://r/b@sha256:{OLD}", "2026-01-01", NEW),
            "different builds",
        ),
        (f"{CONTAINER}\n", "there is none"),
        (build("base", f"docker://r/b@sha256:{OLD}", "2026-01-01"), "need a place"),
        (
            f"{CONTAINER}\n" + 2 * build("base", f"docker://r/b@sha256:{OLD}", "2026-01-01"),
            "need different days",
        ),
    ],
)
def test_what_is_wrong_in_the_site_file_is_said(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        site(tmp_path, f"[slurm]\n{text}")
