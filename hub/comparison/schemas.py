"""Bodies of a comparison of two runs: what is asked for, and the differences."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from ..schemas.base import In, Out

Part = Literal["sources", "outputs", "parameters", "environment"]
"""A part of a run that is compared. The log of a command belongs to its outputs."""
PARTS: tuple[Part, ...] = ("sources", "outputs", "parameters", "environment")
RELATIVE = 1e-9
ABSOLUTE = 1e-12
MOST_RELATIVE, MOST_ABSOLUTE = 1e3, 1e300


class RunIn(In):
    """One of the two runs: the id of a job, or an executed notebook.

    ``notebook`` is the text of the file, and ``name`` what it is called in the answer.
    """

    request: str = Field(default="", max_length=64)
    notebook: str = ""
    name: str = Field(default="", max_length=255)

    @model_validator(mode="after")
    def _one_of_both(self) -> RunIn:
        if bool(self.request) == bool(self.notebook):
            raise ValueError("Give either the id of a job or a notebook.")
        return self


class ToleranceIn(In):
    """Two numbers are equal if they differ by at most the larger of both limits.

    ``relative`` is a part of the larger magnitude, as for ``math.isclose``; ``pixel`` is the most
    by which one colour of a pixel may differ, of 255.
    """

    relative: Annotated[float, Field(ge=0, le=MOST_RELATIVE)] = RELATIVE
    absolute: Annotated[float, Field(ge=0, le=MOST_ABSOLUTE)] = ABSOLUTE
    pixel: Annotated[int, Field(ge=0, le=255)] = 0


class ComparisonIn(In):
    """Two runs to compare; differences in the parts of ``ignore`` do not count."""

    a: RunIn
    b: RunIn
    tolerance: ToleranceIn = ToleranceIn()
    ignore: list[Part] = Field(default=[], max_length=len(PARTS))


class RowOut(Out):
    """A line of both texts, side by side.

    ``gap`` stands for ``count`` equal lines that are not listed. ``close``: the numbers differ
    within the tolerance.
    """

    kind: Literal["same", "close", "changed", "removed", "added", "gap"]
    a: str = ""
    b: str = ""
    count: int = 0


class LargestOut(Out):
    """By how much the compared numbers differ beyond the tolerance.

    ``absolute`` and ``relative`` are the largest differences; null if none is finite.
    """

    numbers: int = 0
    absolute: float | None = None
    relative: float | None = None


class TextDifferenceOut(Out):
    """Two texts by lines. ``left_out``: rows that are not listed because there are too many."""

    changed: int = 0
    removed: int = 0
    added: int = 0
    close: int = 0
    """Lines whose numbers differ within the tolerance."""
    largest: LargestOut = LargestOut()
    rows: list[RowOut] = []
    left_out: int = 0


class ImageDifferenceOut(Out):
    """Two images by pixels; sizes in pixels as width and height, differences of colours of 255."""

    size_a: list[int] | None = None
    size_b: list[int] | None = None
    changed: int = 0
    """Pixels of which a colour differs by more than the tolerance."""
    largest: int = 0
    mean: float = 0.0
    """Mean difference of all colours of all pixels."""


class CellChangeOut(Out):
    """A cell of a table that differs: names of its row and column, and both values."""

    row: str
    column: str
    a: str
    b: str


class TableDifferenceOut(Out):
    """Two tables by cell. Rows are counted with the header."""

    rows_a: int
    rows_b: int
    compared: int
    """Cells that both tables have."""
    changed: int = 0
    rows_removed: int = 0
    rows_added: int = 0
    columns_removed: list[str] = []
    columns_added: list[str] = []
    largest: LargestOut = LargestOut()
    changes: list[CellChangeOut] = []
    """The first of the changed cells."""


class OutputDifferenceOut(Out):
    """An output of a cell in both runs; its number among the outputs in each notebook, from 0."""

    state: Literal["equal", "changed", "removed", "added"]
    form: Literal["text", "image", "table", "error", "data"]
    name: str
    """Such as ``stdout``, ``image/png`` or ``text/html``."""
    a: int | None = None
    b: int | None = None
    message: str = ""
    text: TextDifferenceOut | None = None
    image: ImageDifferenceOut | None = None
    table: TableDifferenceOut | None = None


class CellDifferenceOut(Out):
    """A cell in both runs; ``a`` and ``b`` are its numbers among all cells, from 1."""

    state: Literal["equal", "changed", "removed", "added"]
    kind: str
    a: int | None = None
    b: int | None = None
    moved: bool = False
    """Whether it is at another place; the order of the cells belongs to the sources."""
    source_changed: bool = False
    outputs_changed: bool = False
    source: str = ""
    """Of an equal source, or of the run that has the cell."""
    source_rows: TextDifferenceOut | None = None
    outputs: list[OutputDifferenceOut] = []


class FactOut(Out):
    """A fact of both runs; empty where a run does not have it."""

    part: Literal["sources", "outputs", "parameters", "environment", "run"]
    """``sources``: the command; ``outputs``: how it ended; ``run``: what differs in every run."""
    name: str
    a: str
    b: str
    equal: bool


class ComparedRunOut(Out):
    """One of the runs: a job (``request``) or a file."""

    name: str
    request: str = ""
    kind: Literal["notebook", "command"] = "notebook"
    state: str = ""


class ComparisonSummaryOut(Out):
    """Counts: ``cells`` is the sum of the next four."""

    cells: int = 0
    equal: int = 0
    changed: int = 0
    removed: int = 0
    added: int = 0
    moved: int = 0
    sources: int = 0
    """Cells with another source, removed, added or moved."""
    outputs: int = 0
    """Outputs that differ, a log included."""
    parameters: int = 0
    environment: int = 0


class ComparisonOut(Out):
    """The differences between two runs.

    ``equal`` says whether no part differs that is not ignored. Facts of the part ``run``, such as
    times, never count.
    """

    equal: bool
    a: ComparedRunOut
    b: ComparedRunOut
    relative: float
    absolute: float
    ignored: list[Part] = []
    summary: ComparisonSummaryOut
    facts: list[FactOut] = []
    cells: list[CellDifferenceOut] = []
    log: TextDifferenceOut | None = None
    """For two commands."""
    notes: list[str] = []
    """What was not compared, and why."""
