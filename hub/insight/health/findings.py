"""What the detectors find, as values."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FindingKind(StrEnum):
    """What is wrong with a device or node."""

    XID = "hardware error"
    MISSING_READINGS = "missing readings"
    ABSENT = "absent"
    THROTTLED = "throttled"
    SLOW_CLOCK = "slow clock"
    POWER_LIMIT = "power limit"
    NARROW_LINK = "narrow link"
    LINK_ERRORS = "link errors"
    MEMORY_ERRORS = "memory errors"
    FAILED_JOBS = "failed jobs"
    FAILED_VALIDATION = "failed validation"
    HOT_NODE = "hot node"


class Consequence(StrEnum):
    """What follows from a finding."""

    FAULT = "fault"
    """The device is broken: it is quarantined, and the work on it ends."""
    SUSPECT = "suspect"
    """The device takes no new work until validations pass; the work on it continues."""
    NOTICE = "notice"
    """It is logged; nothing else follows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceFinding:
    """A conclusion with its evidence.

    Attributes:
        target: id of a device; of ``HOT_NODE``, the name of a node.
        evidence: a sentence with the values that led to it.
    """

    target: str
    kind: FindingKind
    consequence: Consequence
    evidence: str
