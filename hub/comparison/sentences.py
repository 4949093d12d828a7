"""One sentence about each difference, for the terminal and for pages."""

from __future__ import annotations

from .schemas import (
    ComparisonSummaryOut,
    ImageDifferenceOut,
    LargestOut,
    TableDifferenceOut,
    TextDifferenceOut,
)


def counted(number: int, noun: str) -> str:
    """Return a number with its noun: ``1 line``, ``2 lines``."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def text_sentence(found: TextDifferenceOut) -> str:
    """Return what differs in a text; for an equal one, whether numbers differ at all."""
    parts = [
        f"{counted(number, 'line')} {word}"
        for number, word in (
            (found.changed, "changed"),
            (found.removed, "removed"),
            (found.added, "added"),
        )
        if number
    ]
    if not parts:
        return (
            f"Equal within the tolerance ({counted(found.close, 'line')})." if found.close else ""
        )
    return f"{', '.join(parts)}.{_largest(found.largest)}"


def image_sentence(found: ImageDifferenceOut) -> str:
    """Return how many pixels differ, and by how much."""
    assert found.size_a is not None
    assert found.size_b is not None
    if found.size_a != found.size_b:
        sizes = " and ".join(" x ".join(map(str, size)) for size in (found.size_a, found.size_b))
        return f"The sizes differ: {sizes} pixels."
    pixels = found.size_a[0] * found.size_a[1]
    if not found.largest:
        return "All pixels are equal."
    amount = f"by at most {found.largest} of 255, {found.mean:.3g} on average"
    if not found.changed:
        return f"Equal within the tolerance: pixels differ {amount}."
    part = found.changed / pixels
    return f"{found.changed:,} of {pixels:,} pixels differ ({part:.2%}), {amount}."


def table_sentence(found: TableDifferenceOut) -> str:
    """Return how many cells of a table differ, and which rows and columns only one table has."""
    parts = [f"{found.changed:,} of {found.compared:,} cells differ"] if found.changed else []
    parts += [
        f"{counted(number, 'row')} {word}"
        for number, word in ((found.rows_removed, "removed"), (found.rows_added, "added"))
        if number
    ]
    parts += [
        f"{counted(len(names), 'column')} {word} ({', '.join(names[:5])})"
        for names, word in ((found.columns_removed, "removed"), (found.columns_added, "added"))
        if names
    ]
    if not parts:
        return ""
    return f"{', '.join(parts)}.{_largest(found.largest)}"


def summary_sentence(found: ComparisonSummaryOut, *, equal: bool) -> str:
    """Return the result of a comparison."""
    parts = [
        counted(number, noun)
        for number, noun in (
            (found.sources, "source"),
            (found.outputs, "output"),
            (found.parameters, "parameter"),
            (found.environment, "fact of the environment"),
        )
        if number
    ]
    different = ", ".join(parts).replace("fact of the environments", "facts of the environment")
    if not parts:
        return "The runs are equal."
    if equal:
        return f"The runs are equal, apart from what is ignored: {different}."
    return f"The runs differ: {different}."


def _largest(found: LargestOut) -> str:
    if not found.numbers:
        return ""
    verb = "differs" if found.numbers == 1 else "differ"
    text = f" {counted(found.numbers, 'number')} {verb}"
    if found.absolute is not None:
        text += f", by at most {found.absolute:.3g}"
    if found.relative is not None:
        text += f" (relative {found.relative:.3g})"
    return f"{text}."
