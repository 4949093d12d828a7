"""Create accounts from a table (CSV), with a one-time link for each.

Saving creates all accounts of the good rows in one transaction, then adds them to their groups.
It can be repeated after a crash with the same table: accounts that exist join the groups that they
miss, and those without a password get new links.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from ..accounts.store import LINK_SECONDS, Accounts
from ..accounts.usernames import check_name, normalise
from ..errors import InvalidInput, TooLarge
from ..files.csv_table import lines_of, without_empty_end
from ..interfaces.jupyterhub import JupyterHub
from ..records.audit import AuditAction
from ..runtime.audit_trail import AuditTrail
from ..schemas.admin import ImportRowOut, PasswordLinkOut, PeopleImportOut
from .users import Users

MAX_ROWS = 500
_COLUMNS = ("name", "groups", "role")
_ROLES: Mapping[str, bool] = {"": False, "user": False, "admin": True}
_SHOWN = 80
ACCEPTED = (
    "A table (CSV) whose first line names its columns: 'name' (the name to sign in with) and, as "
    "far as wanted, 'groups' (separated by spaces) and 'role' (user or admin)."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportRow:
    """One row.

    Attributes:
        problem: why the row is wrong; empty for a good one.
        exists: whether there is an account of this name.
        joins: groups of which the user is not a member yet.
        link: whether the account needs a one-time link.
    """

    line: int
    name: str
    admin: bool = False
    groups: tuple[str, ...] = ()
    problem: str = ""
    exists: bool = False
    joins: tuple[str, ...] = ()
    link: bool = False

    @property
    def changes(self) -> bool:
        return not self.problem and bool(self.joins or self.link)

    def shown(self) -> ImportRowOut:
        if self.problem:
            status, note = "wrong", self.problem
        elif self.exists:
            status, note = "exists", self._effect()
        else:
            status, note = "new", ""
        return ImportRowOut.model_validate(
            {
                "line": self.line,
                "name": self.name[:_SHOWN],
                "admin": self.admin,
                "groups": list(self.groups),
                "status": status,
                "note": note,
            }
        )

    def _effect(self) -> str:
        effects = [f"joins {', '.join(self.joins)}"] if self.joins else []
        if self.link:
            effects.append("has no password yet and gets a new link")
        return f"{' and '.join(effects) or 'nothing changes'}."


@dataclass(frozen=True, slots=True)
class PeopleImport(AuditTrail):
    """Previews a table, and creates the accounts of its good rows."""

    hub: JupyterHub
    accounts: Accounts

    def preview(self, text: str) -> PeopleImportOut:
        """Return what saving would do.

        Raises:
            InvalidInput, TooLarge: the table as a whole cannot be used.
            Unavailable: JupyterHub, which stores the members, does not answer.
        """
        rows = self._rows(text)
        return PeopleImportOut(
            rows=[row.shown() for row in rows], changes=any(row.changes for row in rows)
        )

    def save(self, text: str, *, who: str) -> PeopleImportOut:
        """Create the accounts, join the groups, and return the links. Raises as ``preview``."""
        rows = self._rows(text)
        good = [row for row in rows if row.changes]
        new = {row.name: row.admin for row in good if not row.exists}
        self.accounts.add_without_password(new)
        for name, admin in new.items():
            change = self._change(AuditAction.ACCOUNT_ADD, name, who, after={"admin": admin})
            self.store.add_change(change)
        self._join(good, who)
        links = self.accounts.make_links(row.name for row in good if row.link)
        for name in links.keys() - new.keys():
            self.store.add_change(self._change(AuditAction.PASSWORD_LINK, name, who))
        until = self.clock() + LINK_SECONDS
        return PeopleImportOut(
            rows=[row.shown() for row in rows],
            links=[
                PasswordLinkOut(name=name, code=code, expires_at=until)
                for name, code in links.items()
            ],
            saved=True,
            changes=bool(good),
        )

    def _join(self, rows: Sequence[ImportRow], who: str) -> None:
        members: dict[str, list[str]] = defaultdict(list)
        for row in rows:
            for group in row.joins:
                members[group].append(row.name)
        # The authenticator sets the role at sign-in: services may not create administrators.
        self.hub.add_users(tuple(row.name for row in rows if row.joins))
        users = Users(self.store, self.clock, self.hub, self.accounts)
        for group, names in members.items():
            users.join(group, names, who=who)

    def _rows(self, text: str) -> list[ImportRow]:
        read = parse(text, {group.name for group in self.store.groups()})
        known = {account.name: account for account in self.accounts.all()}
        members = {user.name: user.groups for user in self.hub.users()}
        rows = []
        for row in read:
            account = known.get(row.name)
            joins = tuple(each for each in row.groups if each not in members.get(row.name, ()))
            link = account is None or not account.password_at
            rows.append(replace(row, exists=account is not None, joins=joins, link=link))
        return rows


def parse(text: str, groups: Collection[str]) -> list[ImportRow]:
    """Return all rows, the wrong ones with their problem.

    Raises:
        InvalidInput: the table is empty, is not CSV, or has other columns.
        TooLarge: it has more than ``MAX_ROWS`` rows.
    """
    try:
        (_, heading), *lines = lines_of(text, title="table")
    except InvalidInput as error:
        raise InvalidInput(error.message, accepted=ACCEPTED, field="table") from error
    columns = _columns(heading)
    if len(lines) > MAX_ROWS:
        raise TooLarge(
            f"The table has {len(lines):,} rows.",
            accepted=f"At most {MAX_ROWS}: split it into several files.",
            field="table",
        )
    if not lines:
        raise InvalidInput("The table has a heading and no rows.", accepted=ACCEPTED, field="table")
    rows: dict[str, ImportRow] = {}
    found = []
    for number, cells in lines:
        row = _row(number, columns, without_empty_end(cells), groups)
        if not row.problem and row.name in rows:
            row = replace(row, problem=f"{row.name} is also in line {rows[row.name].line}.")
        rows.setdefault(row.name, row)
        found.append(row)
    return found


def _columns(cells: Sequence[str]) -> tuple[str, ...]:
    columns = tuple(cell.strip().lower() for cell in without_empty_end(cells))
    problem = ""
    if unknown := [column for column in columns if column not in _COLUMNS]:
        problem = f"The table has a column {unknown[0][:40]!r}, which is not known."
    elif "name" not in columns:
        problem = "The first line of the table names no column 'name'."
    elif len(set(columns)) < len(columns):
        problem = "The table has a column twice."
    if problem:
        raise InvalidInput(problem, accepted=ACCEPTED, field="table")
    return columns


def _row(
    line: int, columns: Sequence[str], cells: Sequence[str], groups: Collection[str]
) -> ImportRow:
    given = {name: cell.strip() for name, cell in zip(columns, cells, strict=False)}
    name, role = normalise(given.get("name", "")), given.get("role", "").lower()
    wanted = tuple(dict.fromkeys(given.get("groups", "").replace(",", " ").split()))
    row = ImportRow(line=line, name=name, admin=_ROLES.get(role, False), groups=wanted)
    unknown = [group for group in wanted if group not in groups]
    if len(cells) > len(columns):
        problem = f"It has {len(cells)} cells, and there are {len(columns)} columns."
    elif not name:
        problem = "It has no name."
    elif role not in _ROLES:
        problem = f"{role[:40]!r} is not a role: user or admin."
    elif unknown:
        problem = f"There is no group {unknown[0][:64]}."
    else:
        try:
            check_name(name)
            problem = ""
        except InvalidInput as error:
            problem = error.message
    return replace(row, problem=problem)
