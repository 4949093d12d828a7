"""Sentences on the memory that a job would have needed that ran out of it."""

from __future__ import annotations

from collections.abc import Sequence

from .units import count, size

MARK = "would have needed"
"""Part of each of these sentences."""
_ROOM = 1.25
"""A suggested limit is so many times an extrapolated need."""
_MORE = 1.5
"""A suggested limit is so many times a lower bound."""
_MEBIBYTE = 1 << 20
_GIBIBYTE = 1 << 30
_LARGEST_LIMIT = 1 << 44
"""No higher limit is suggested, in bytes."""


def unknown_need(*, device: bool) -> str:
    advice = (
        "Use less device memory, or a model with more."
        if device
        else "Submit it again with a higher memory limit, or use less."
    )
    return f"What it {MARK} is not known: its use was not measured. {advice}"


def least_need(amount: int) -> str:
    """Say a lower bound, in bytes."""
    return f"It {MARK} at least {size(amount)}."


def need_of_same_parameters(amount: int, runs: int) -> str:
    """``amount``: the highest peak of ``runs`` jobs."""
    used = "as" if runs == 1 else "the highest of"
    did = " did" if runs == 1 else ""
    return (
        f"It {MARK} about {size(amount)}, {used} {_earlier(runs)} with the same code and "
        f"parameters{did}."
    )


def need_by_parameters(amount: int, runs: int) -> str:
    return (
        f"It {MARK} about {size(amount)}, by what {_earlier(runs)} of the same code used with "
        "other parameters."
    )


def need_by_growth(amount: int, rate: float) -> str:
    """``rate``: bytes in a second."""
    return (
        f"Its memory grew steadily, by {size(rate * 60)} a minute: up to its expected end it "
        f"{MARK} about {size(amount)}. A loop that keeps its results or tensors is a common cause."
    )


def suggested_memory_limit(amount: int, *, lower_bound: bool) -> int:
    """Return a memory limit in whole MiB or GiB, in bytes, with room above what was needed."""
    wanted = amount * (_MORE if lower_bound else _ROOM)
    unit = _GIBIBYTE if wanted >= 2 * _GIBIBYTE else _MEBIBYTE
    return int(-(-wanted // unit)) * unit


def memory_limit_advice(limit: int, *, lower_bound: bool) -> str:
    if limit > _LARGEST_LIMIT:
        return "Use less memory: nodes do not have so much."
    unit, name = (_GIBIBYTE, "GiB") if limit >= 2 * _GIBIBYTE else (_MEBIBYTE, "MiB")
    more = " or more" if lower_bound else ""
    return f"Submit it again with a memory limit of {limit // unit} {name}{more}, or use less."


def sufficient_limit(limit: int) -> str:
    """Say that a job ran out of memory below its own limit, in bytes."""
    return (
        f"Its memory limit of {size(limit)} is above that: its node may have had no more. Submit "
        "it again, or use less."
    )


def device_advice(amount: int, models: Sequence[str]) -> str:
    """Say which device models have so much memory, in bytes, and more than the devices it had."""
    if models:
        return f"Use less device memory, or a model with more: {', '.join(models)}."
    return f"Use less device memory: no other model of this pool has more than {size(amount)}."


def _earlier(runs: int) -> str:
    return count(runs, "earlier job")
