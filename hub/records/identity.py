"""The caller of a request, their access rights, and the check for administrators."""

from __future__ import annotations

from dataclasses import dataclass

from ..errors import Forbidden


@dataclass(frozen=True, slots=True, kw_only=True)
class Program:
    """A program that acts for its owner, with a token and a budget of its own.

    Attributes:
        name: unique among the programs of the owner that are not revoked.
        device_seconds: its budget, for its whole lifetime.
        approve_above: device-seconds above which a job waits for the approval of the owner; None:
            no job does.
        reads_owner: whether it may read the other jobs of its owner; it may never change them.
    """

    id: str
    name: str
    owner: str
    device_seconds: float
    approve_above: float | None = None
    reads_owner: bool = False
    created_at: float = 0.0
    expires_at: float = 0.0
    revoked_at: float | None = None
    revoked_by: str = ""

    def works(self, now: float) -> bool:
        """Whether its token is accepted."""
        return self.revoked_at is None and now < self.expires_at


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUsage:
    """The budget of a program at one time, in device-seconds.

    Attributes:
        used: charged so far, and held by running jobs but not charged yet.
        committed: the most that its jobs may have used when all of them have ended: what the ended
            ones were charged, and the whole time limits of the queued and running ones.
        jobs: how many jobs it has submitted.
        live: how many of them have not ended.
    """

    used: float = 0.0
    committed: float = 0.0
    jobs: int = 0
    live: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramCharge:
    """What the store checks and records when it stores a job of a program.

    Attributes:
        device_seconds: the most that the job may use.
        needs_approval: whether it waits for the approval of the owner.
    """

    program: Program
    device_seconds: float
    needs_approval: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramJob:
    """A job of a program that has not ended."""

    request_id: str
    program: Program
    submitted_at: float
    waits: bool
    """Whether it waits for approval."""
    holds: bool = False
    """Whether it holds devices."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """The authenticated caller, as JupyterHub describes them.

    Attributes:
        groups: JupyterHub groups at sign-in; admission reads them fresh.
        program: the program that calls for this user; None: the user.
    """

    name: str
    admin: bool = False
    groups: frozenset[str] = frozenset()
    program: Program | None = None

    @property
    def label(self) -> str:
        """The caller as the audit log and other users see it."""
        return f"{self.name} (program {self.program.name})" if self.program else self.name


@dataclass(frozen=True, slots=True, kw_only=True)
class Viewer:
    """A user who reads data, with the groups in which they are a teacher.

    ``identity`` is None for the hub itself, which sees everything.
    """

    identity: Identity | None
    teaches: frozenset[str] = frozenset()

    @property
    def name(self) -> str | None:
        return self.identity.name if self.identity else None

    @property
    def sees_all(self) -> bool:
        return self.identity is None or self.identity.admin

    @property
    def only_program(self) -> str | None:
        """The program whose jobs are all that the reader may see, by name; None: no program."""
        program = self.identity.program if self.identity else None
        return None if program is None or program.reads_owner else program.name

    def speaks_to(self, owner: str) -> bool:
        """Whether the reader is the owner; JupyterHub shows what it reads to the owner."""
        return self.identity is None or owner == self.name

    def may_see(self, owner: str, group: str, program: str = "") -> bool:
        """Whether the reader may see work of this user; ``program``: the one that submitted it."""
        if self.only_program is not None:
            return owner == self.name and program == self.only_program
        return self.sees_all or owner == self.name or group in self.teaches


def require_admin(who: Identity) -> None:
    """Raise Forbidden unless the caller is an administrator."""
    if not who.admin:
        raise Forbidden(
            "This needs administrator rights.", accepted="Ask an administrator of your site."
        )
