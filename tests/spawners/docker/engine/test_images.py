"""The lists of engines become the catalogue."""

from __future__ import annotations

import pytest

from carrel.hub.records.images import Image
from carrel.hub.records.json_value import Json
from carrel.images import labels
from carrel.spawners.docker.engine.client import ImageMissing
from carrel.spawners.docker.engine.images import digest_of, images_of, tools_image

A, B, C = ("sha256:" + letter * 64 for letter in "abc")


def listed(digest: str, created: int, **marks: str) -> dict[str, Json]:
    names = {
        labels.NAME: "torch",
        labels.TITLE: "PyTorch",
        labels.SUMMARY: "For networks.",
        labels.KERNELS: "python3 julia",
        labels.PACKAGES: "torch 2.13.0, numpy 2.4.6",
    }
    return {"Id": digest, "Created": created, "Size": 7, "Labels": {**names, **marks}}


def test_one_digest_on_two_machines_is_one_image() -> None:
    (found,) = images_of([("one", [listed(A, 5)]), ("two", [listed(A, 5)])], "base")
    assert found == Image(
        name="torch",
        digest=A,
        title="PyTorch",
        summary="For networks.",
        size_bytes=7,
        built_at=5.0,
        kernels=("python3", "julia"),
        packages=("torch 2.13.0", "numpy 2.4.6"),
        nodes=("one", "two"),
    )


def test_images_are_ordered_by_name_and_newest_first() -> None:
    base = listed(C, 1, **{labels.NAME: "base"})
    found = images_of([("one", [listed(A, 5), listed(B, 9), base])], "base")
    assert [(image.name, image.digest, image.default) for image in found] == [
        ("base", C, True),
        ("torch", B, False),
        ("torch", A, False),
    ]


@pytest.mark.parametrize(
    ("names", "said", "default"),
    [
        (("base", "datascience", "torch"), "", "datascience"),
        (("base", "torch"), "", "base"),
        (("base", "datascience", "torch"), "torch", "torch"),
        (("base",), "torch", None),
    ],
)
def test_the_default_image_is_the_sites_or_the_usual_one(
    names: tuple[str, ...], said: str, default: str | None
) -> None:
    digests = {name: "sha256:" + str(number) * 64 for number, name in enumerate(names, 1)}
    each = [listed(digest, 5, **{labels.NAME: name}) for name, digest in digests.items()]
    images = images_of([("one", each)], said)
    assert [image.name for image in images if image.default] == ([default] if default else [])
    if default is None:
        with pytest.raises(ImageMissing, match="is not on one"):
            digest_of(images, "", node="one")
    else:
        assert digest_of(images, "", node="one") == digests[default]


@pytest.mark.parametrize(
    "other",
    [
        {"Id": B, "Created": 5, "Size": 7, "Labels": None},
        {"Id": B, "Created": 5, "Size": 7, "Labels": {"maintainer": "x"}},
        {"Id": "12", "Labels": {labels.NAME: "torch"}},
        {"Id": B, "Labels": {labels.NAME: "../etc"}},
        {"Labels": {labels.NAME: "torch"}},
    ],
)
def test_images_outside_of_the_catalogue_are_left_out(other: dict[str, Json]) -> None:
    assert [image.digest for image in images_of([("one", [other, listed(A, 5)])], "base")] == [A]


def test_the_service_itself_uses_base_whatever_the_default_image_is() -> None:
    grading, base = (
        listed(C, 9, **{labels.NAME: "grading"}),
        listed(A, 1, **{labels.NAME: "base"}),
    )
    found = images_of([("one", [grading, base])], "grading")
    assert digest_of(found, "", node="one") == C
    assert tools_image(found, node="one") == A
    (alone,) = images_of([("one", [grading])], "grading")
    assert tools_image((alone,), node="one") == C
