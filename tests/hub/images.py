"""A small catalogue of images, as an engine would list it."""

from __future__ import annotations

from carrel.hub.records.images import Image

OLD = "sha256:" + "a" * 64
NEW = "sha256:" + "b" * 64
BASE = "sha256:" + "c" * 64
GONE = "sha256:" + "d" * 64


def image(name: str, digest: str, built_at: float, *, default: bool = False) -> Image:
    return Image(
        name=name,
        digest=digest,
        title=f"The {name} image",
        summary=f"What {name} is for.",
        size_bytes=600_000_000,
        built_at=built_at,
        kernels=("python3",),
        packages=("numpy 2.4.6",),
        nodes=("local",),
        default=default,
    )


CATALOGUE = (
    image("base", BASE, 100.0, default=True),
    image("torch", NEW, 300.0),
    image("torch", OLD, 200.0),
)
