"""``carrel up`` with short restart delays, for tests that kill one part often."""

from __future__ import annotations

from carrel.hub.cli import main
from carrel.hub.supervisor import supervisor
from carrel.hub.supervisor.child_process import Backoff


def always_soon() -> Backoff:
    return Backoff(longest=0.2)


if __name__ == "__main__":
    supervisor.Backoff = always_soon  # type: ignore[assignment,misc]
    main()
