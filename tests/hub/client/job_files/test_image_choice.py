"""Images of the site for those of a job file."""

from __future__ import annotations

from typing import Any

import pytest

from carrel.hub.client.job_files.description import DescribedJob, DescribedRole, JobFileFormat
from carrel.hub.client.job_files.image_choice import nearest, resolved_images
from carrel.hub.client.job_files.yaml_source import MalformedJobFile
from carrel.hub.schemas.images import ImageOut, ImagesOut


def image(name: str, **more: Any) -> ImageOut:
    return ImageOut(
        name=name, digest="sha256:1", reference=f"{name}@sha256:1", title="", summary="",
        size_bytes=1, built_at=0.0, newest=True, **more,
    )  # fmt: skip  # short


CATALOGUE = ImagesOut(
    choice=True,
    images=[
        image("base", default=True, packages=["numpy 2.1"]),
        image("cuda", packages=["torch 2.13.0", "torchvision 0.2"]),
        image("tf", packages=["tensorflow 2.20"]),
        image("sk", packages=["scikit-learn 1.5"]),
    ],
    pins=[],
)
NONE = ImagesOut(choice=False, images=[], pins=[])


def job(*images: str) -> DescribedJob:
    roles = tuple(
        DescribedRole(
            name=f"r{n}", own_name=f"r{n}", count=1, devices=0, memory_bytes=0, script="x",
            image=each, line=n + 5,
        )
        for n, each in enumerate(images)
    )  # fmt: skip  # short
    return DescribedJob(format=JobFileFormat.OPENPAI, name="a", roles=roles)


@pytest.mark.parametrize(
    ("wanted", "name"),
    [
        ("openpai/standard:python_3.6-pytorch_1.2.0-gpu", "cuda"),
        ("openpai/pai.example.keras.tensorflow", "tf"),
        ("openpai/pai.example.sklearn", "sk"),
        ("tf", "tf"),
        ("node:carbon", "base"),
    ],
)
def test_the_nearest_image_has_the_most_words_in_common(wanted: str, name: str) -> None:
    assert nearest(wanted, CATALOGUE) == name


def test_an_image_of_the_catalogue_is_used_by_its_name() -> None:
    images, changed = resolved_images("a", job("tf", "cuda@sha256:1"), CATALOGUE, use_nearest=False)
    assert (images, changed) == ({"r0": "tf", "r1": "cuda@sha256:1"}, [])


def test_a_missing_image_is_refused_with_the_nearest() -> None:
    with pytest.raises(MalformedJobFile) as refused:
        resolved_images("a.yaml", job("tf", "pytorch:1"), CATALOGUE, use_nearest=False)
    assert str(refused.value) == (
        "a.yaml, line 6: The site has no image 'pytorch:1'. The nearest is cuda: add --image cuda."
    )


def test_the_nearest_or_a_chosen_image_is_used_on_request() -> None:
    images, changed = resolved_images("a", job("pytorch:1"), CATALOGUE, use_nearest=True)
    assert images == {"r0": "cuda"}
    assert [each.reason for each in changed] == ["It runs in the image cuda."]
    images, _ = resolved_images("a", job("tf"), CATALOGUE, chosen="base", use_nearest=False)
    assert images == {"r0": "base"}


def test_a_site_without_images_runs_commands_in_its_environment() -> None:
    images, changed = resolved_images("a", job("x", "x"), NONE, use_nearest=False)
    assert images == {"r0": "", "r1": ""}
    assert [(each.line, each.field) for each in changed] == [(6, "image x")]


def test_a_site_with_an_empty_catalogue_names_none() -> None:
    empty = ImagesOut(choice=True, images=[], pins=[])
    with pytest.raises(MalformedJobFile, match=r"The site has no image\.$"):
        resolved_images("a", job("x"), empty, use_nearest=True)
