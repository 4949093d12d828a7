"""Authentication and authorization of callers: users, programs, JupyterHub and attempts.

| caller | credential | rights |
| --- | --- | --- |
| a user | the signed cookie of a sign-in | everything of their own; changes need a form token |
| a script | a JupyterHub token | read with custom:carrel:read, change with custom:carrel:submit |
| a program | a token of its own | submit, read and end its jobs, within its budget |
| JupyterHub | the service token of the installation | open and end sessions, follow every request |
| an attempt | the token of its lease | report under that lease |
| monitoring | the metrics token, or one with custom:carrel:metrics | read /metrics |
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request

from ...config.base_url import SERVICE_PREFIX
from ...errors import CarrelError, Forbidden, NotSignedIn, Unavailable
from ...interfaces.clock import Clock
from ...interfaces.programs import ProgramStore
from ...messages.programs import HOW_TO_RENEW, is_program_token
from ...programs.tokens import token_hash
from ...records.gangs import split_member_id
from ...records.identity import Identity
from ...requests.attempt_reports import AttemptReports
from .call_budgets import ADDRESS, PROGRAM
from .csrf import HEADER, Csrf
from .hub_oauth import ACCESS_SCOPE, METRICS_SCOPE, READ_SCOPE, SUBMIT_SCOPE, SignIn, TokenHolder
from .signer import Signer, same

SESSION_COOKIE = "carrel-session"
SESSION_PURPOSE = "session"
_HUB_SESSION_COOKIE = "jupyterhub-session-id"
_AUTHORIZATION = re.compile(r"(?:token|bearer)\s+(\S+)\s*", re.IGNORECASE)
_HOW = "Send a JupyterHub token as 'Authorization: token …', or sign in with a browser."
_LEASES_PREFIX = f"{SERVICE_PREFIX}api/v1/leases/"
"""Where attempts report, with the token of their lease."""
_HOW_TO_MONITOR = "Send what `carrel metrics-token` prints as 'Authorization: Bearer …'."


@dataclass(frozen=True, slots=True, kw_only=True)
class Visitor:
    """A user with a browser; form tokens are bound to ``session``."""

    identity: Identity
    session: str


@dataclass(frozen=True, slots=True)
class CallerAccess:
    """Identifies callers; methods raise a CarrelError for unauthorized ones."""

    sign_in: SignIn
    signer: Signer
    csrf: Csrf
    hub_token: str
    programs: ProgramStore
    clock: Clock
    metrics_token: str = ""

    async def visitor(self, request: Request) -> Visitor | None:
        """Return the user of the cookie; None if it is missing or has expired."""
        cookie = request.cookies.get(SESSION_COOKIE, "")
        # Accept only tokens from a sign-in here: a narrow API token in a cookie would bypass its
        # own scopes.
        token = self.signer.unwrap(SESSION_PURPOSE, cookie)
        if token is None:
            return None
        session_id = request.cookies.get(_HUB_SESSION_COOKIE, "")
        person = await self.sign_in.person(token, session_id)
        # A sign-out ends the browser's session at JupyterHub. A token that another tab obtained at
        # the same moment belongs to that session, and must not sign in the next user.
        if person is None or person.session_id != session_id:
            return None
        _check_access(person)
        return Visitor(identity=person.identity, session=cookie)

    async def reader(self, request: Request) -> Identity:
        who = await self.reader_or_hub(request)
        if who is None:
            raise Forbidden(
                "The service token of JupyterHub is not accepted here; use the token of a user."
            )
        return who

    async def reader_or_hub(self, request: Request) -> Identity | None:
        """Return a user who may read; None is JupyterHub itself."""
        token = token_of(request)
        if token is None:
            return (await self._signed_in(request)).identity
        if self.is_hub(token):
            return None
        return (await self._script(token, READ_SCOPE, "read")).identity

    async def job_reader(self, request: Request) -> Identity:
        """Return a user who may read jobs, or a program."""
        program = await self._own_token(request)
        return await self.reader(request) if program is None else program

    async def job_reader_or_hub(self, request: Request) -> Identity | None:
        """Return a user who may read jobs, or a program; None is JupyterHub itself."""
        program = await self._own_token(request)
        return await self.reader_or_hub(request) if program is None else program

    async def job_writer(self, request: Request) -> Identity:
        """Return a user who may submit and end jobs, or a program."""
        program = await self._own_token(request)
        return await self.writer(request) if program is None else program

    async def _own_token(self, request: Request) -> Identity | None:
        """Return the program of a call, as its owner; None for another caller.

        The store is asked at every call, so that a revoked token is refused at once.

        Raises:
            NotSignedIn: the token of a program is unknown or no longer valid.
        """
        token = token_of(request)
        if token is None or not is_program_token(token):
            return None
        return await self._program_of(token)

    async def _program_of(self, token: str) -> Identity:
        program = await run_in_threadpool(self.programs.program_of_token, token_hash(token))
        if program is None:
            raise NotSignedIn("This token of a program is unknown.", accepted=HOW_TO_RENEW)
        if program.revoked_at is not None:
            raise NotSignedIn(
                f"The token of the program {program.name} was revoked.", accepted=HOW_TO_RENEW
            )
        if not program.works(self.clock()):
            raise NotSignedIn(
                f"The token of the program {program.name} has expired.", accepted=HOW_TO_RENEW
            )
        return Identity(name=program.owner, program=program)

    async def writer(self, request: Request) -> Identity:
        """Return a user who may change things; a cookie requires the form token in a header."""
        token = token_of(request)
        if token is None:
            visitor = await self._signed_in(request)
            self.csrf.check(request, visitor.session, request.headers.get(HEADER))
            return visitor.identity
        if self.is_hub(token):
            raise Forbidden("The service token of JupyterHub cannot act as a user.")
        return (await self._script(token, SUBMIT_SCOPE, "submit")).identity

    def hub(self, request: Request) -> None:
        token = token_of(request)
        if token is None:
            raise NotSignedIn(
                "Only JupyterHub may call this.", accepted="JupyterHub sends its service token."
            )
        if not self.is_hub(token):
            raise Forbidden(
                "Only JupyterHub may call this.", accepted="Send the service token of JupyterHub."
            )

    def attempt(self, request: Request, lease_id: str, reports: AttemptReports) -> None:
        """Check that the token is that of this lease, or of the lease of this member. Blocks.

        Raises NotSignedIn or Forbidden.
        """
        token = token_of(request)
        if token is None:
            raise NotSignedIn(
                "Only the attempt that runs under the lease may call this.",
                accepted="Send the token that the attempt was started with.",
            )
        if reports.lease_of_token(token) != split_member_id(lease_id)[0]:
            raise Forbidden("This token belongs to another lease.")

    async def monitor(self, request: Request) -> None:
        """Check that the token may read the metrics; raises NotSignedIn or Forbidden."""
        token = token_of(request)
        if token is None:
            raise NotSignedIn("A metrics token is required.", accepted=_HOW_TO_MONITOR)
        # The metrics token works without JupyterHub, so that monitoring notices its absence.
        if not (self.metrics_token and same(token, self.metrics_token)):
            await self._script(token, METRICS_SCOPE, "read the metrics")

    async def accepts(self, request: Request) -> bool:
        """Return whether the credential of a call that is still open is valid."""
        token = token_of(request)
        try:
            if token is None:
                return await self.visitor(request) is not None
            return self.is_hub(token) or await self.sign_in.person(token) is not None
        except Forbidden:
            return False
        except Unavailable:
            return True

    async def account(self, request: Request, reports: AttemptReports) -> str | None:
        """Return whose calls this one counts among; None for parts of Carrel itself.

        A caller who cannot be identified counts among those of their address.
        """
        address = f"{ADDRESS}{request.client.host if request.client else ''}"
        try:
            token = token_of(request)
            if token is None:
                visitor = await self.visitor(request)
                return f"user {visitor.identity.name}" if visitor else address
            if self.is_hub(token) or (self.metrics_token and same(token, self.metrics_token)):
                return None
            if is_program_token(token):
                program = (await self._program_of(token)).program
                return f"{PROGRAM}{program.id}" if program else address
            if request.url.path.startswith(_LEASES_PREFIX):
                await run_in_threadpool(reports.lease_of_token, token)
                return None
            person = await self.sign_in.person(token)
        except CarrelError:
            return address
        return f"user {person.identity.name}" if person else address

    def is_hub(self, token: str) -> bool:
        return same(token, self.hub_token)

    async def _signed_in(self, request: Request) -> Visitor:
        visitor = await self.visitor(request)
        if visitor is None:
            raise NotSignedIn("You are not signed in.", accepted=_HOW)
        return visitor

    async def _script(self, token: str, scope: str, verb: str) -> TokenHolder:
        if is_program_token(token):
            raise Forbidden(
                "A program may not call this.",
                accepted="Programs may submit jobs, read and cancel them, ask for quotes, and read "
                "the pool. For other calls send the token of a user.",
            )
        person = await self.sign_in.person(token)
        if person is None:
            raise NotSignedIn("JupyterHub does not know this token.", accepted=_HOW)
        _check_access(person)
        if not person.may(scope):
            raise Forbidden(
                f"This token may not {verb}.",
                accepted=f"It needs the scope {scope}; create one on the Token page of JupyterHub.",
            )
        return person


def token_of(request: Request) -> str | None:
    """Return the token of the Authorization header; None without the header.

    Raises:
        NotSignedIn: the header is of another kind.
    """
    header = request.headers.get("authorization")
    if header is None:
        return None
    found = _AUTHORIZATION.fullmatch(header)
    if found is None:
        raise NotSignedIn("The Authorization header is invalid.", accepted=_HOW)
    return found.group(1)


def _check_access(person: TokenHolder) -> None:
    if not person.may(ACCESS_SCOPE):
        raise Forbidden(
            "This account or token may not use Carrel.",
            accepted=f"It needs the scope {ACCESS_SCOPE}; ask your administrator.",
        )
