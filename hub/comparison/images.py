"""Compare two images by pixels, and SVG as text without what differs at every drawing."""

from __future__ import annotations

import base64
import binascii
import re
import warnings
from io import BytesIO
from typing import TYPE_CHECKING, Final

from .schemas import ImageDifferenceOut
from .tolerance import Tolerance

if TYPE_CHECKING:
    from PIL import Image

MOST_PIXELS: Final = 16_000_000
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_COLOURS: Final = 256
_METADATA: Final = re.compile(r"<metadata>.*?</metadata>", re.DOTALL)
_ID: Final = re.compile(r"\bid=\"([^\"]{1,200})\"")


class UnreadableImage(Exception):
    """An image that cannot be decoded; the text says why."""


def compare_images(a: str, b: str, tolerance: Tolerance) -> ImageDifferenceOut:
    """Compare two images in base64.

    Raises:
        UnreadableImage: one of them is broken, too large, or Pillow is not installed.
    """
    left, right = _decoded(a, "first"), _decoded(b, "second")
    if left.size != right.size:
        return ImageDifferenceOut(size_a=list(left.size), size_b=list(right.size))
    from PIL import ImageChops  # noqa: PLC0415  # as in _decoded

    bands = ImageChops.difference(left, right).split()
    largest = bands[0]
    for band in bands[1:]:
        largest = ImageChops.lighter(largest, band)
    counts = largest.histogram()
    total = sum(level * count for band in bands for level, count in enumerate(band.histogram()))
    return ImageDifferenceOut(
        size_a=list(left.size),
        size_b=list(right.size),
        changed=sum(counts[tolerance.pixel + 1 :]),
        largest=max(level for level in range(_COLOURS) if counts[level]),
        mean=total / (len(bands) * left.width * left.height),
    )


def stable_svg(text: str) -> str:
    """Return an SVG without its date, and with ids numbered: they are random in every process."""
    text = _METADATA.sub("", text)
    numbers = {
        name: f"id-{number}" for number, name in enumerate(dict.fromkeys(_ID.findall(text)), 1)
    }
    if not numbers:
        return text
    return re.sub(
        r"(?<=id=\")([^\"]{1,200})(?=\")|(?<=#)([\w.:-]{1,200})",
        lambda found: numbers.get(found.group(), found.group()),
        text,
    )


def _decoded(data: str, which: str) -> Image.Image:
    # Not needed by any other part of the service.
    try:
        from PIL import Image, UnidentifiedImageError  # noqa: PLC0415
    except ImportError:
        raise UnreadableImage("Pillow is not installed where the service runs") from None

    try:
        content = base64.b64decode(data)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            image = Image.open(BytesIO(content), formats=_FORMATS)
            pixels = image.width * image.height
            if not 0 < pixels <= MOST_PIXELS:
                raise UnreadableImage(f"the {which} image has {pixels:,} pixels")
            return image.convert("RGBA")
    except (binascii.Error, UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        raise UnreadableImage(f"the {which} image is broken") from error
