"""The sample accounts of ``carrel up --demo``, and their sample group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .passwords import Cost, random_password
from .store import Accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAccount:
    """A sample account; of its roles, JupyterHub knows only ``admin``."""

    name: str
    role: str

    @property
    def admin(self) -> bool:
        return self.role == "admin"


DEMO_GROUP = "cs101"
_COST = Cost(n=2**12, p=1)
"""Some milliseconds: 50 random bits, for a demo, need no more. A password of a user's own does."""
DEMO_ACCOUNTS = (
    DemoAccount(name="admin", role="admin"),
    DemoAccount(name="teacher", role="teacher"),
    DemoAccount(name="student1", role="student"),
    DemoAccount(name="student2", role="student"),
    DemoAccount(name="student3", role="student"),
)


def demo_accounts() -> tuple[DemoAccount, ...]:
    """Return the sample accounts."""
    return DEMO_ACCOUNTS


def make_demo_accounts(accounts: Accounts) -> Mapping[str, str]:
    """Create the sample accounts that are missing.

    Returns the passwords of the new accounts by name: only their hashes are stored.
    """
    passwords = {}
    for wanted in DEMO_ACCOUNTS:
        if accounts.find(wanted.name) is None:
            passwords[wanted.name] = random_password()
            password = passwords[wanted.name]
            accounts.add(wanted.name, password, admin=wanted.admin, cost=_COST)
    return passwords
