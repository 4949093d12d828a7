"""Which cells of a notebook job have run, and for how long, from its events."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import zip_longest

from ..records.events import EventRecord
from ..records.json_value import Json

MOST_CELLS = 500
"""Number of cells whose times are kept; the others are not timed."""
_LONGEST_HASH = 64
_LONGEST_SECONDS = 366 * 86_400.0
"""More is a clock error, or was made up by the job."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CellProgress:
    """The cells of an attempt.

    Attributes:
        cells: number of code cells.
        keys: what each cell is known by, the hash of its source; empty if it was not reported.
        seconds: how long the first cells took; None for one whose results were taken over.
        running_since: when the running cell started, in seconds since the epoch; None between two
            cells.
        earlier: how long the first cells took in earlier attempts of the job; None for one that has
            not run to its end.
    """

    cells: int
    keys: tuple[str, ...] = ()
    seconds: tuple[float | None, ...] = ()
    running_since: float | None = None
    earlier: tuple[float | None, ...] = ()

    @property
    def known_seconds(self) -> tuple[float | None, ...]:
        """How long the first cells took, those that were taken over in an earlier attempt."""
        pairs = zip_longest(self.seconds, self.earlier[: len(self.seconds)])
        return tuple(own if own is not None else before for own, before in pairs)

    @property
    def has_begun(self) -> bool:
        """Whether a cell has started, so that it is known where the attempt began."""
        return self.running_since is not None or any(each is not None for each in self.seconds)


def cells_after(before: CellProgress | None, event: EventRecord) -> CellProgress | None:
    """Return the cells after one more event; a new attempt starts from the beginning."""
    number = event.data.get("number")
    match event.kind:
        case "cells":
            cells = event.data.get("cells")
            count = cells if isinstance(cells, int) else 0
            return CellProgress(
                cells=count,
                keys=_keys(event.data.get("hashes"), count),
                earlier=() if before is None else _earlier(before),
            )
        case "resumed" if before:
            done = event.data.get("cells")
            return _until(before, done + 1) if isinstance(done, int) else before
        case "cell_started" if before and isinstance(number, int):
            return replace(_until(before, number), running_since=event.at)
        case "cell_finished" if before and isinstance(number, int):
            known = _until(before, number)
            if not 0 < number <= MOST_CELLS:
                return replace(known, running_since=None)
            seconds = (*known.seconds[: number - 1], _seconds(event.data.get("seconds")))
            return replace(known, seconds=seconds, running_since=None)
        case "state" if event.data.get("state") == "queued":
            return None if before is None else CellProgress(cells=0, earlier=_earlier(before))
        case _:
            return before


def _earlier(before: CellProgress) -> tuple[float | None, ...]:
    """Return what is known of the cells after an attempt: its times, and those of earlier ones."""
    pairs = zip_longest(before.seconds, before.earlier)
    return tuple(own if own is not None else older for own, older in pairs)


def _until(before: CellProgress, number: int) -> CellProgress:
    """Return the progress before the cell with this number: cells that did not run have no time."""
    missing = min(number - 1, before.cells, MOST_CELLS) - len(before.seconds)
    return replace(before, seconds=before.seconds + (None,) * missing) if missing > 0 else before


def _keys(hashes: Json, count: int) -> tuple[str, ...]:
    """Return a key for each cell: its hash, with a number where a source occurs again."""
    if not isinstance(hashes, list | tuple) or len(hashes) != count or count > MOST_CELLS:
        return ()
    known = [each for each in hashes if isinstance(each, str) and len(each) <= _LONGEST_HASH]
    return keys_of_hashes(known) if len(known) == count else ()


def keys_of_hashes(hashes: Iterable[str]) -> tuple[str, ...]:
    """Return a key for each cell by the hashes of their sources, with a number for a repetition."""
    seen: Counter[str] = Counter()
    keys: list[str] = []
    for each in hashes:
        seen[each] += 1
        keys.append(each if seen[each] == 1 else f"{each}.{seen[each]}")
    return tuple(keys)


def _seconds(value: Json) -> float | None:
    if (
        isinstance(value, bool)
        or not isinstance(value, int | float)
        or not 0 <= value <= _LONGEST_SECONDS
    ):
        return None
    return float(value)
