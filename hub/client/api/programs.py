"""Calls for programs, their tokens and the approval of their jobs."""

from __future__ import annotations

from collections.abc import Sequence

from ...schemas import JobIn
from ...schemas.programs.bodies import (
    ApprovalOut,
    ApprovalsOut,
    DryRunOut,
    NewProgramOut,
    ProgramIn,
    ProgramOut,
    ProgramsOut,
)
from ..transport.calls import Call
from ..transport.connection import Connection, segment


class ProgramCalls(Connection):
    """The part of ``AsyncClient`` for programs."""

    async def programs(self, *, everyone: bool = False) -> Sequence[ProgramOut]:
        """Return the caller's programs, the newest first; ``everyone``: those of all users."""
        query = {"all": "true"} if everyone else {}
        call = Call(method="GET", path="programs", query=query)
        return (await self._read_call(call, ProgramsOut)).programs

    async def create_program(self, program: ProgramIn) -> NewProgramOut:
        """Create a program; its token is in the answer only."""
        body = program.model_dump(mode="json", exclude_unset=True)
        return await self._post("programs", NewProgramOut, body)

    async def revoke_program(self, name: str) -> ProgramOut:
        """Revoke a program by id, or one of the caller's by name. Safe to repeat."""
        call = Call(method="DELETE", path=f"programs/{segment(name)}")
        return await self._send_repeatable(call, ProgramOut)

    async def own_program(self) -> ProgramOut:
        """Return the program whose token this client has, with its budget."""
        return await self._get("program", ProgramOut)

    async def approvals(self) -> Sequence[ApprovalOut]:
        """Return the jobs that wait for the caller's approval."""
        return (await self._get("approvals", ApprovalsOut)).approvals

    async def approve(self, request_id: str) -> None:
        """Approve a job of a program of the caller. Safe to repeat."""
        path = f"requests/{segment(request_id)}/approve"
        await self._transport.send(Call(method="POST", path=path))

    async def dry_run(self, job: JobIn) -> DryRunOut:
        """Return what a job would cost; nothing is stored. Raises as ``submit`` does."""
        body = {"kind": job.kind} | job.model_dump(mode="json", exclude_unset=True)
        return await self._post("requests/dry-run", DryRunOut, body)
