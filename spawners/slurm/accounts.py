"""Mirror the quota tree to accounts of Slurm: ``carrel slurm sync``.

Every group becomes an account ``carrel_GROUP`` below the account of its parent, with its max quota
as ``GrpTRES=gres/gpu``, its longest time limit as ``MaxWall`` and its weight as fair share. Jobs of
a group are then charged to its account (``mirror`` below ``[slurm]``), and Slurm enforces both even
against a faulty Carrel. Quotas of single members are Carrel's alone: Slurm sees one user. A QOS for
each group would add no limit to these.
"""

from __future__ import annotations

import getpass
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from ...hub.errors import BackendFailed, Conflict
from ...hub.interfaces.backend_settings import BackendSettings
from ...hub.scheduling.model.snapshot import Group
from .client import SlurmClient, options_of
from .times import seconds_of, time_limit

TOP: Final = "carrel"
_SHARES: Final = 100
"""Fair-share units of Slurm for a weight of 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SlurmAccount:
    """An account of Slurm.

    Attributes:
        tres: its ``GrpTRES``, such as ``gres/gpu=4``.
        minutes: its ``MaxWall``; 0 for none.
        shares: its fair share.
        users: who may submit to it.
    """

    parent: str
    tres: str = ""
    minutes: int = 0
    shares: int = 1
    users: frozenset[str] = frozenset()


def account_of(group: str) -> str:
    """Return the name of the account of a group."""
    return f"{TOP}_{group}".lower()


def wanted_accounts(groups: Sequence[Group], user: str) -> dict[str, SlurmAccount]:
    """Return the accounts that mirror a quota tree, parents first."""
    found = {TOP: SlurmAccount(parent="root")}
    left = list(groups)
    while left:
        ready = [each for each in left if not each.parent or account_of(each.parent) in found]
        if not ready:  # a parent that is no group
            ready = left
        for group in ready:
            found[account_of(group.name)] = SlurmAccount(
                parent=account_of(group.parent) if group.parent else TOP,
                tres=f"gres/gpu={group.max_devices}",
                minutes=time_limit(group.max_seconds),
                shares=max(1, round(group.weight * _SHARES)),
                users=frozenset({user}),
            )
        left = [each for each in left if each not in ready]
    return found


def steps(
    wanted: Mapping[str, SlurmAccount], found: Mapping[str, SlurmAccount]
) -> list[tuple[str, ...]]:
    """Return the calls of ``sacctmgr`` that turn the accounts found into those wanted."""
    calls: list[tuple[str, ...]] = []
    for name, account in wanted.items():
        values = [f"parent={account.parent}", f"fairshare={account.shares}"]
        values += [f"GrpTRES={account.tres}"] if account.tres else []
        values += [f"MaxWall={account.minutes}"] if account.minutes else []
        before = found.get(name)
        if before is None:
            described = (f"description={name}", "organization=carrel")
            calls.append(("add", "account", name, *values, *described))
        elif replace(before, users=account.users) != account:
            calls.append(("modify", "account", "where", f"name={name}", "set", *values))
        missing = account.users - (before.users if before else frozenset())
        calls += [("add", "user", user, f"account={name}") for user in sorted(missing)]
    return calls


def create(settings: BackendSettings) -> SlurmAccounts:
    """Entry point (group ``carrel.quota_mirrors``)."""
    return SlurmAccounts(settings)


class SlurmAccounts:
    """Accounts of a Slurm cluster (``hub.interfaces.host.QuotaMirror``)."""

    def __init__(self, settings: BackendSettings) -> None:
        self._client = SlurmClient(options_of(settings).conf)

    def sync(self, groups: Sequence[Group], *, dry_run: bool) -> tuple[str, ...]:
        found = self._accounts()
        wanted = wanted_accounts(groups, getpass.getuser())
        done = []
        for call in steps(wanted, found):
            if not dry_run:
                self._client.run("sacctmgr", "-i", *call)
            done.append(shlex.join(("sacctmgr", *call)))
        left = sorted(name for name in found if name.startswith(f"{TOP}_") and name not in wanted)
        return (*done, *(f"# {name} has no group any more, and is left as it is" for name in left))

    def _accounts(self) -> dict[str, SlurmAccount]:
        """Return the accounts of the cluster by name.

        Raises:
            Conflict: it keeps no accounts.
            Unavailable: slurmdbd does not answer.
        """
        columns = "format=Account,ParentName,GrpTRES,Fairshare,User,MaxWall"
        try:
            out = self._client.run("sacctmgr", "-nP", "show", "assoc", columns)
        except BackendFailed as error:
            raise Conflict(
                f"The accounts of the cluster cannot be read: {error.message}",
                accepted="A cluster with slurmdbd (AccountingStorageType="
                "accounting_storage/slurmdbd), and an account that may change it.",
            ) from error
        rows = [line.split("|")[:6] for line in out.splitlines()]
        return {
            name: SlurmAccount(
                parent=parent,
                tres=tres,
                minutes=round(seconds_of(longest) / 60),
                shares=int(shares) if shares.isdigit() else 1,
                users=frozenset(row[4] for row in rows if row[0] == name and row[4]),
            )
            for name, parent, tres, shares, user, longest in rows
            if not user
        }
