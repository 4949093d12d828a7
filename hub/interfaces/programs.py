"""The port to stored programs: their tokens, budgets and jobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from ..records.audit import AuditEntry
from ..records.identity import Program, ProgramJob, ProgramUsage


class ProgramStore(Protocol):
    """The part of the store for programs; see ``hub.interfaces.store``."""

    def add_program(
        self, program: Program, token_hash: str, *, most: int, change: AuditEntry | None = None
    ) -> None:
        """Store a program.

        Raises:
            Conflict: its owner has, or had, one of the same name.
            OverMaximum: its owner has ``most`` working ones.
        """

    def program_of_token(self, token_hash: str) -> Program | None:
        """Return the program of a token, also a revoked one; None for an unknown token."""

    def programs(self, owner: str | None) -> tuple[Program, ...]:
        """Return the programs of a user, or of all users, the newest first."""

    def program(self, program_id: str) -> Program:
        """Return a program. Raises NotFound."""

    def program_usage(self, program_ids: frozenset[str], now: float) -> Mapping[str, ProgramUsage]:
        """Return the budgets of these programs by id; also of those without a job."""

    def programs_used(self, program_ids: frozenset[str], now: float) -> Mapping[str, float]:
        """Return ``ProgramUsage.used`` of these programs by id, at less cost."""

    def revoke_program(
        self, program_id: str, *, by: str, now: float, change: AuditEntry | None = None
    ) -> bool:
        """Revoke a program; return False if it was revoked before, and write nothing."""

    def program_jobs(self) -> tuple[ProgramJob, ...]:
        """Return the jobs of all programs that have not ended, the oldest first."""

    def approve_job(self, request_id: str, *, now: float, change: AuditEntry | None = None) -> bool:
        """Approve a job of a program; return False if it does not wait for approval."""
