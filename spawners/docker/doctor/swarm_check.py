"""Report whether the members of a job can be on several nodes."""

from __future__ import annotations

from ....hub.records.diagnostics import Finding, Severity
from ..nodes.swarm import SwarmConnection

_SUBJECT = "jobs on several nodes"


def several_nodes(connection: SwarmConnection) -> Finding:
    """Return a finding about the swarm of all nodes.

    A site without a swarm lacks nothing; one that connects only some nodes does.
    """
    if connection.manager:
        what = "The members of a job can be on several nodes: the engines form one swarm."
        return Finding(subject=_SUBJECT, verdict=Severity.FINE, what=what, mend="")
    if not connection.used:
        what = "All members of a job run on one node: the engines form no swarm."
        return Finding(subject=_SUBJECT, verdict=Severity.FINE, what=what, mend="")
    return Finding(
        subject=_SUBJECT,
        verdict=Severity.WARNING,
        what=connection.problem,
        mend=connection.remedy,
    )
