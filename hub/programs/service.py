"""Create, list and revoke programs; check what they submit; approve their jobs."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, replace
from typing import Final

from ..errors import Conflict, Forbidden, InvalidInput, NotFound
from ..groups.membership import Membership
from ..messages.programs import APPROVAL_SECONDS, group_refusal
from ..records.audit import AuditAction, AuditEntry
from ..records.identity import Identity, Program, ProgramCharge, ProgramUsage
from ..records.json_value import Json
from ..records.requests import NewRequest
from ..runtime.context import Context
from ..scheduling.model.snapshot import UNTIL_RELEASED
from ..schemas.programs.bodies import NewProgramOut, ProgramIn, ProgramOut
from ..store.rules.program_budget import left, over_budget
from .tokens import new_token, token_hash

MOST: Final = 10
"""Working programs of one user."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,38}[a-z0-9])?")


@dataclass(frozen=True, slots=True)
class Programs:
    """The programs of users; methods raise a CarrelError for callers without the right."""

    context: Context

    # -- tokens ---------------------------------------------------------------------------

    def add(self, who: Identity, body: ProgramIn) -> NewProgramOut:
        """Create a program of the caller; its token is in the answer, and nowhere else.

        Raises:
            Forbidden: no group of the caller allows programs.
            InvalidInput: the name is invalid.
            Conflict, OverMaximum: the caller has, or had, one of this name, or has too many.
        """
        c, now = self.context, self.context.clock()
        if not _NAME.fullmatch(body.name):
            raise InvalidInput(
                f"{body.name[:40]!r} is not a valid name of a program.",
                accepted="1 to 40 of a to z, 0 to 9, dot, underscore and hyphen.",
                field="name",
            )
        if not self.allowed_groups(who):
            raise Forbidden("None of your groups allows programs.", accepted=group_refusal("GROUP"))
        program = Program(
            id=f"p-{secrets.token_hex(4)}",
            name=body.name,
            owner=who.name,
            device_seconds=body.device_seconds,
            approve_above=body.approve_above,
            reads_owner=body.reads_owner,
            created_at=now,
            expires_at=now + body.days * 86400.0,
        )
        token = new_token()
        after: dict[str, Json] = {
            "name": program.name,
            "device_seconds": program.device_seconds,
            "approve_above": program.approve_above,
            "reads_owner": program.reads_owner,
            "expires_at": program.expires_at,
        }
        change = AuditEntry(
            at=now, who=who.name, action=AuditAction.PROGRAM_ADD, target=program.id, after=after
        )
        c.store.add_program(program, token_hash(token), most=MOST, change=change)
        return NewProgramOut(program=_out(program, ProgramUsage(), now), token=token)

    def allowed_groups(self, who: Identity) -> list[str]:
        """Return the groups to which programs of this user may submit."""
        groups = Membership.of(self.context).known_groups(who)
        return [group.name for group in groups if self._allows(group.name, who.name)]

    def all(self, who: Identity) -> list[ProgramOut]:
        """Return the programs of all users. Raises Forbidden unless an administrator calls."""
        if not who.admin:
            raise Forbidden("This needs administrator rights.")
        return self._listed(None)

    def of(self, who: Identity) -> list[ProgramOut]:
        """Return the programs of the caller, the newest first, also revoked ones."""
        return self._listed(who.name)

    def standing(self, program: Program) -> ProgramOut:
        """Return a program with its budget now."""
        now = self.context.clock()
        usage = self.context.store.program_usage(frozenset({program.id}), now)
        return _out(program, usage[program.id], now)

    def revoke(self, who: Identity, name: str) -> ProgramOut:
        """Revoke a program by its id, or one of the caller's by its name.

        Its token is refused from now on. Its queued jobs are cancelled by the next cycle of the
        loop; its running jobs go on. Safe to repeat.

        Raises:
            NotFound: there is no such program of the caller; administrators may revoke any.
        """
        c, now = self.context, self.context.clock()
        found = (
            each
            for each in c.store.programs(None if who.admin else who.name)
            if name == each.id or (name == each.name and each.owner == who.name)
        )
        program = next(found, None)
        if program is None:
            raise NotFound(
                f"There is no program {name[:40]!r}.", accepted="`carrel token ls` lists yours."
            )
        change = AuditEntry(
            at=now,
            who=who.name,
            action=AuditAction.PROGRAM_REVOKE,
            target=program.id,
            before={"name": program.name, "owner": program.owner},
        )
        c.store.revoke_program(program.id, by=who.name, now=now, change=change)
        c.notifier.notify()
        return self.standing(c.store.program(program.id))

    # -- submissions ----------------------------------------------------------------------

    def charged(
        self, who: Identity, request: NewRequest
    ) -> tuple[NewRequest, ProgramCharge | None]:
        """Return the job of a caller as it is stored, and what it costs the program, if it is one.

        Raises:
            Forbidden: the group does not allow programs of this user.
        """
        program, job = who.program, request.job
        if program is None or job is None:
            return request, None
        if not self._allows(request.group, who.name):
            raise Forbidden(
                f"The group {request.group} does not allow programs.",
                accepted=group_refusal(request.group),
            )
        device_seconds = float(request.devices * request.seconds)
        limit = program.approve_above
        waits = limit is not None and device_seconds > limit
        request = replace(
            request,
            job=replace(job, program=program.name),
            # A key of the owner, or of another program, belongs to another job.
            idempotency_key=f"{program.id}:{request.idempotency_key}",
            not_before=UNTIL_RELEASED if waits else request.not_before,
        )
        charge = ProgramCharge(program=program, device_seconds=device_seconds, needs_approval=waits)
        return request, charge

    def check(self, charge: ProgramCharge) -> float:
        """Return the device-seconds that are left after a job, for a dry run.

        Raises:
            OverMaximum: the job may use more than what is left.
        """
        now, program = self.context.clock(), charge.program
        usage = self.context.store.program_usage(frozenset({program.id}), now)[program.id]
        if charge.device_seconds > left(program, usage):
            raise over_budget(program, usage, charge.device_seconds)
        return left(program, usage) - charge.device_seconds

    def _allows(self, group: str, owner: str) -> bool:
        store = self.context.store
        return store.group(group).programs or group in store.taught_by(owner)

    # -- approval -------------------------------------------------------------------------

    def unapproved(self, who: Identity) -> dict[str, float]:
        """Return the jobs that wait for the approval of the caller, and when they are cancelled."""
        return {
            job.request_id: job.submitted_at + APPROVAL_SECONDS
            for job in self.context.store.program_jobs()
            if job.waits and job.program.owner == who.name
        }

    def approve(self, who: Identity, request_id: str) -> None:
        """Approve a job of a program of the caller. Safe to repeat.

        Raises:
            NotFound: there is no such job of a program of the caller.
            Conflict: it has ended.
        """
        c, now = self.context, self.context.clock()
        record = c.store.request(request_id)
        if record.owner != who.name or not record.program:
            raise NotFound(
                f"There is no job {request_id} of a program of yours.",
                accepted="`carrel approve` lists the jobs that wait for you.",
            )
        if record.ended_at is not None:
            raise Conflict(f"{request_id} has ended: it was not approved in time, or cancelled.")
        change = AuditEntry(
            at=now,
            who=who.name,
            action=AuditAction.PROGRAM_APPROVE,
            target=request_id,
            after={"program": record.program},
        )
        c.store.approve_job(request_id, now=now, change=change)
        c.notifier.notify()

    # -- helpers --------------------------------------------------------------------------

    def _listed(self, owner: str | None) -> list[ProgramOut]:
        now, store = self.context.clock(), self.context.store
        found = store.programs(owner)
        usage = store.program_usage(frozenset(each.id for each in found), now)
        return [_out(each, usage[each.id], now) for each in found]


def _out(program: Program, usage: ProgramUsage, now: float) -> ProgramOut:
    return ProgramOut(
        id=program.id,
        name=program.name,
        owner=program.owner,
        device_seconds=program.device_seconds,
        used=round(usage.used, 3),
        reserved=round(max(0.0, usage.committed - usage.used), 3),
        left=round(left(program, usage), 3),
        approve_above=program.approve_above,
        reads_owner=program.reads_owner,
        jobs=usage.jobs,
        live_jobs=usage.live,
        created_at=program.created_at,
        expires_at=program.expires_at,
        revoked_at=program.revoked_at,
        revoked_by=program.revoked_by,
        works=program.works(now),
    )
