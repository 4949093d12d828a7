"""Check the columns of a Spark frame, and turn their values into arrays."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np

from ...hub.errors import InvalidInput

_NUMBERS: Final = frozenset({"boolean", "tinyint", "smallint", "int", "bigint", "float", "double"})
METHODS: Final = ("predict", "transform")
"""Of estimators of scikit-learn, for new rows: the first that there is."""
_NUMBERED: Final = frozenset(f"array<{each}>" for each in _NUMBERS)


@dataclass(frozen=True, slots=True, kw_only=True)
class InputColumns:
    """The columns that a model reads.

    Attributes:
        names: in the model's order.
        kind: ``pictures`` and ``text`` are one column, as are ``arrays`` and ``vectors`` of
            numbers; ``columns`` are several columns, or one in a list.
    """

    names: tuple[str, ...]
    kind: str

    @classmethod
    def of(cls, frame: Any, names: str | Sequence[str]) -> InputColumns:
        """Return the columns of a frame.

        Raises:
            InvalidInput: the frame lacks one, or a model cannot read its type.
        """
        listed = (names,) if isinstance(names, str) else tuple(names)
        if not listed:
            raise InvalidInput("No input column is named.", accepted="At least one column.")
        types = types_of(frame, listed)
        if not isinstance(names, str):
            simple = _NUMBERS | {"string"}
            if wrong := [each for each in listed if types[each] not in simple]:
                raise InvalidInput(
                    f"The column {wrong[0]} is {types[wrong[0]]}.",
                    accepted="In a list, columns of numbers or texts; one column of arrays by "
                    "its name alone.",
                )
            return cls(names=listed, kind="columns")
        found = types[names]
        if found == "binary":
            return cls(names=listed, kind="pictures")
        if found == "string":
            return cls(names=listed, kind="text")
        if found in _NUMBERED:
            return cls(names=listed, kind="arrays")
        if found == "vector":
            return cls(names=listed, kind="vectors")
        if found in _NUMBERS:
            return cls(names=listed, kind="columns")
        raise InvalidInput(
            f"The column {names} is {found}.",
            accepted="Numbers, arrays or vectors of numbers, texts, or encoded pictures (binary).",
        )

    def expressions(self) -> list[Any]:
        """Return the columns as Spark sends them to Python: vectors as arrays."""
        from pyspark.ml.functions import vector_to_array  # noqa: PLC0415
        from pyspark.sql.functions import col  # noqa: PLC0415

        columns = [col(f"`{name}`") for name in self.names]
        if self.kind == "vectors":
            return [vector_to_array(columns[0]).alias(self.names[0])]
        return columns

    def values(self, frame: Any) -> Any:
        """Return what a model of scikit-learn reads of a pandas frame.

        Raises:
            InvalidInput: a value is missing, or arrays have several lengths.
        """
        part = frame[list(self.names)]
        if self.kind in ("arrays", "vectors"):
            return stacked(part[self.names[0]], self.names[0])
        if part.isna().to_numpy().any():
            empty = next(name for name in self.names if part[name].isna().any())
            raise InvalidInput(
                f"The column {empty} has rows without a value.", accepted="Drop or fill them."
            )
        return part[self.names[0]].to_numpy(object) if self.kind == "text" else part


@dataclass(frozen=True, slots=True, kw_only=True)
class StageColumns:
    """The columns of a stage.

    Attributes:
        features: the name of one column, or a list of names.
        label: that an estimator learns; empty for one that learns without.
        prediction: new, for what ``predict`` or ``transform`` gives.
        probability: new, for what ``predict_proba`` gives; empty for none.
    """

    features: str | tuple[str, ...]
    label: str
    prediction: str
    probability: str

    def new(self) -> tuple[str, ...]:
        return tuple(filter(None, (self.prediction, self.probability)))

    def check_new(self, frame: Any) -> None:
        """Refuse a frame that has one of the new columns."""
        if taken := [name for name in self.new() if name in frame.columns]:
            raise InvalidInput(
                f"The frame has a column {taken[0]!r} already.",
                accepted="Drop it, or name another prediction column.",
            )


def types_of(frame: Any, names: Iterable[str]) -> dict[str, str]:
    """Return the type of each named column, in Spark's words.

    Raises:
        InvalidInput: the frame lacks one.
    """
    found = {each.name: each.dataType.simpleString() for each in frame.schema.fields}
    for name in names:
        if name not in found:
            raise InvalidInput(
                f"The frame has no column {name!r}.",
                accepted=f"One of its columns: {', '.join(found)}.",
            )
    return {name: found[name] for name in names}


def stacked(rows: Iterable[Any], name: str) -> Any:
    """Return one array of rows of one length.

    Raises:
        InvalidInput: a row is missing, or has another length.
    """
    parts = list(rows)
    if any(part is None for part in parts):
        raise InvalidInput(
            f"The column {name} has rows without a value.", accepted="Drop or fill them."
        )
    lengths = sorted({len(part) for part in parts})
    if len(lengths) > 1:
        raise InvalidInput(
            f"The column {name} has arrays of {lengths[0]} and of {lengths[-1]} numbers.",
            accepted="One length.",
        )
    return np.stack([np.asarray(part) for part in parts])


def file_content(path: Any) -> bytes:
    """Read a file of this machine, by its path or by its address as Spark writes it (file:/…).

    Raises:
        InvalidInput: there is none, or it cannot be read.
    """
    accepted = "In a column of texts, paths of files of pictures on this machine."
    if not isinstance(path, str) or not path:  # pandas may have NaN for None
        raise InvalidInput("A row has no path of a picture.", accepted=accepted)
    try:
        return Path(path.removeprefix("file:")).read_bytes()
    except (OSError, ValueError) as error:
        raise InvalidInput(f"A picture cannot be read: {error}.", accepted=accepted) from error


def pictures(contents: Iterable[bytes | None], size: tuple[int, int] | None = None) -> Any:
    """Return encoded pictures as one array: (pictures, 3, height, width), from 0 to 1.

    Args:
        contents: files of PNG, JPEG and others that Pillow reads.
        size: height and width to which they are scaled; None if all have one size.

    Raises:
        InvalidInput: a row is no picture, or the sizes differ.
    """
    from PIL import Image, UnidentifiedImageError  # noqa: PLC0415 # only pictures need it

    found = []
    for number, content in enumerate(contents):
        try:
            with Image.open(io.BytesIO(content or b"")) as opened:
                picture = opened.convert("RGB")
                if size is not None and picture.size != size[::-1]:
                    picture = picture.resize(size[::-1], Image.Resampling.BILINEAR)
                found.append(np.asarray(picture, np.float32))
        except (UnidentifiedImageError, OSError, SyntaxError) as error:
            raise InvalidInput(
                f"Picture {number} of a batch cannot be read: {error}.",
                accepted="The content of a file of PNG, JPEG, GIF, BMP, TIFF or WebP.",
            ) from error
    shapes = sorted({each.shape[:2] for each in found})
    if len(shapes) > 1:
        raise InvalidInput(
            f"The pictures have several sizes, such as {shapes[0]} and {shapes[-1]}.",
            accepted="Name a size to which they are scaled: size=(64, 64).",
        )
    return np.stack(found).transpose(0, 3, 1, 2) / np.float32(255)
