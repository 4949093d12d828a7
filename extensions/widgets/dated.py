"""Sentences with times in them, for the scripts that put the reader's own clock in."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from pydantic import JsonValue

from ...hub.messages.timed_text import AroundAMoment


def dated_facts(parts: Sequence[AroundAMoment]) -> list[JsonValue]:
    return [asdict(part) for part in parts]
