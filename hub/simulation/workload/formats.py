"""Trace formats: parse the rows of the supported kinds of traces, which are tables with a header.

Columns that were not known at submission are ignored: ``walltime_limit_s`` of Helios is the
duration itself, added when the trace was converted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from math import isfinite
from types import MappingProxyType

from ...errors import InvalidInput
from ...scheduling.model.snapshot import Arrangement, Share
from .jobs import Gang, TraceJob

Row = Mapping[str, str]

_MICROSECONDS = 1e6
_MILLI = 1000
MOST_SECONDS = 315_360_000
"""Longest duration: ten years."""
LATEST = 253_402_300_800
"""Seconds from 1970 to the end of the year 9999, the latest date that can be formatted."""


class LeftOut(StrEnum):
    """Reason for which a valid line is not a job."""

    NEVER_RAN = "never scheduled, so that its runtime is unknown"
    NO_DEVICE = "asks for no device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Format:
    """One kind of trace.

    Attributes:
        columns: required columns.
        read: parses the job of a row; its second argument is an id for rows without one.
        comment: lines that start with it are skipped.
        source: publication of such traces.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Row, str], TraceJob | LeftOut]
    source: str
    comment: str = ""


def moment(text: str) -> float:
    """Parse a time on the clock of the trace: a date and time, or a number of seconds.

    Times without a zone are taken as UTC: only differences count.
    """
    text = text.strip()
    try:
        # Numbers first: digits without separators, such as 20171001, are seconds and not a date.
        float(text)
    except ValueError:
        return _date(text)
    try:
        return _clock(text, "time")
    except InvalidInput as error:
        raise _invalid_time(text) from error


def _date(text: str) -> float:
    try:
        found = datetime.fromisoformat(text)
    except ValueError as error:
        raise _invalid_time(text) from error
    return (found if found.tzinfo else found.replace(tzinfo=UTC)).timestamp()


def _invalid_time(text: str) -> InvalidInput:
    return InvalidInput(
        f"{text!r} is not a time.",
        accepted="2017-10-01, 2017-10-01 07:01:55 or a number of seconds is accepted, "
        f"up to {LATEST:,} before or after 1970.",
    )


def _philly(row: Row, line: str) -> TraceJob:
    return TraceJob(
        id=line,
        user="",
        tenant=row["cluster"],
        devices=_devices(row["num_gpus"], "num_gpus"),
        seconds=_duration(row["duration"], "duration"),
        submitted_at=moment(row["timestamp"]),
    )


def _helios(row: Row, _line: str) -> TraceJob:
    return TraceJob(
        id=row["job_id"],
        user=row["user"],
        tenant=row["tenant"],
        devices=_devices(row["num_chips"], "num_chips"),
        seconds=_duration(row["duration_s"], "duration_s"),
        submitted_at=_clock(row["submit_time"], "submit_time", per_second=_MICROSECONDS),
    )


def _openb(row: Row, _line: str) -> TraceJob | LeftOut:
    if not row["scheduled_time"]:
        return LeftOut.NEVER_RAN
    devices = _whole(row["num_gpu"], "num_gpu", least=0)
    if devices == 0:
        return LeftOut.NO_DEVICE
    milli = _whole(row["gpu_milli"], "gpu_milli", least=1)
    began = _clock(row["scheduled_time"], "scheduled_time")
    ended = _clock(row["deletion_time"], "deletion_time")
    return TraceJob(
        id=row["name"],
        user="",
        tenant="",
        devices=devices,
        seconds=_duration(str(ended - began), "deletion_time less scheduled_time"),
        submitted_at=_clock(row["creation_time"], "creation_time"),
        share=Share(compute=milli / _MILLI) if devices == 1 and milli < _MILLI else None,
    )


def _csv(row: Row, line: str) -> TraceJob:
    limit = row.get("limit", "")
    devices = _devices(row["devices"], "devices")
    return TraceJob(
        id=row.get("id", "") or line,
        user=row.get("user", ""),
        tenant=row.get("tenant", ""),
        devices=devices,
        seconds=_duration(row["seconds"], "seconds"),
        submitted_at=moment(row["submitted_at"]),
        limit=_duration(limit, "limit") if limit else None,
        model=row.get("model", "").strip() or None,
        gang=_gang(row, devices),
        share=_share(row.get("share", ""), devices),
    )


FORMATS: Mapping[str, Format] = MappingProxyType(
    {
        each.name: each
        for each in (
            Format(
                name="philly",
                columns=("timestamp", "duration", "num_gpus", "cluster"),
                read=_philly,
                source="Jeon et al., Analysis of Large-Scale Multi-Tenant GPU Clusters for DNN "
                "Training Workloads, USENIX ATC 2019",
            ),
            Format(
                name="helios",
                columns=("job_id", "user", "tenant", "submit_time", "num_chips", "duration_s"),
                read=_helios,
                comment="#",
                source="Hu et al., Characterization and Prediction of Deep Learning Workloads in "
                "Large-Scale GPU Datacenters, SC 2021, doi:10.1145/3458817.3476223",
            ),
            Format(
                name="openb",
                columns=(
                    *("name", "num_gpu", "gpu_milli"),
                    *("creation_time", "scheduled_time", "deletion_time"),
                ),
                read=_openb,
                source="Weng et al., Beware of Fragmentation: Scheduling GPU-Sharing Workloads "
                "with Fragmentation Gradient Descent, USENIX ATC 2023",
            ),
            Format(
                name="csv",
                columns=("submitted_at", "seconds", "devices"),
                read=_csv,
                comment="#",
                source="",
            ),
        )
    }
)


def _devices(text: str, column: str) -> int:
    return _whole(text, column, least=1)


def _whole(text: str, column: str, *, least: int) -> int:
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if found < least:
        raise InvalidInput(
            f"{column} is {text!r}.", accepted=f"A whole number of at least {least} is accepted."
        )
    return found


def _duration(text: str, column: str) -> float:
    """Parse a duration, cut to whole seconds as in the simulators that Carrel is compared with."""
    found = _number(text, column, "seconds")
    if not 0 <= found <= MOST_SECONDS:
        raise InvalidInput(
            f"{column} is {text!r}.",
            accepted=f"0 to {MOST_SECONDS:,} seconds (ten years) are accepted.",
        )
    return float(int(found))


def _clock(text: str, column: str, *, per_second: float = 1.0) -> float:
    """Parse a time in seconds on the clock of the trace."""
    found = _number(text, column, "microseconds" if per_second == _MICROSECONDS else "seconds")
    seconds = found / per_second
    if abs(seconds) > LATEST:
        raise InvalidInput(
            f"{column} is {text!r}.",
            accepted=f"At most {LATEST:,} seconds before or after 1970 are accepted.",
        )
    return seconds


def _share(text: str, devices: int) -> Share | None:
    """Parse the share of one device; None for whole devices."""
    if not text:
        return None
    found = _number(text, "share", "a part of one device")
    if not 0 < found <= 1:
        raise InvalidInput(
            f"share is {text!r}.", accepted="A number above 0 and at most 1 is accepted."
        )
    if devices != 1:
        raise InvalidInput(
            f"share is {text!r} and devices is {devices}.",
            accepted="With a share, devices must be 1; otherwise leave share empty.",
        )
    return Share(compute=found)


def _gang(row: Row, devices: int) -> Gang | None:
    """Parse the equal members of a job, which share its devices; None if none are given."""
    text = row.get("members", "")
    if not text:
        for column in ("minimum", "arrangement"):
            if row.get(column, ""):
                raise InvalidInput(
                    f"{column} is {row[column]!r} and members is empty.",
                    accepted=f"Without members, leave {column} empty.",
                )
        return None
    members = _whole(text, "members", least=1)
    if devices % members:
        raise InvalidInput(
            f"members is {text!r} and devices is {devices}.",
            accepted="devices is the number for all members together: a multiple of members is "
            "accepted.",
        )
    return Gang(
        members=members,
        minimum=_minimum(row.get("minimum", ""), members),
        arrangement=_arrangement(row.get("arrangement", "")),
    )


def _minimum(text: str, members: int) -> int:
    """Parse the minimum number of members; all of them if none is given."""
    found = _whole(text, "minimum", least=1) if text else members
    if found > members:
        raise InvalidInput(
            f"minimum is {text!r} and members is {members}.",
            accepted="The minimum is at most the number of members.",
        )
    return found


def _arrangement(text: str) -> Arrangement:
    try:
        return Arrangement(text or Arrangement.PACK)
    except ValueError as error:
        raise InvalidInput(
            f"arrangement is {text!r}.", accepted=f"{' or '.join(Arrangement)} is accepted."
        ) from error


def _number(text: str, column: str, what: str) -> float:
    try:
        found = float(text)
    except ValueError:
        found = float("nan")
    if not isfinite(found):
        raise InvalidInput(f"{column} is {text!r}.", accepted=f"A number ({what}) is accepted.")
    return found
