"""Bodies of jobs of several members, and which of their runners live."""

from __future__ import annotations

from typing import Any

from carrel.hub.schemas import JobIn

from ..world import World


def gang(*roles: dict[str, Any], **changes: Any) -> JobIn:
    given = list(roles) or [
        {"name": "worker", "count": 2, "devices": 1, "command": ["python", "w.py"]}
    ]
    return JobIn.model_validate({"group": "cs101", "seconds": 3600, "roles": given, **changes})


def alive(world: World) -> list[str]:
    return [name for name, attempt in world.backend.attempts.items() if attempt.alive]
