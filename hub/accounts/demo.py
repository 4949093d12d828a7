"""The sample people of ``carrel up --demo``, and the sample group that they belong to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from .passwords import random_password
from .store import Accounts


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoAccount:
    """``role`` is what people call it; only admin is one in the hub's eyes."""

    name: str
    role: str

    @property
    def admin(self) -> bool:
        return self.role == "admin"


DEMO_GROUP = "cs101"
DEMO_ACCOUNTS = (
    DemoAccount(name="admin", role="admin"),
    DemoAccount(name="teacher", role="teacher"),
    DemoAccount(name="student1", role="student"),
    DemoAccount(name="student2", role="student"),
    DemoAccount(name="student3", role="student"),
)


def demo_accounts() -> tuple[DemoAccount, ...]:
    """The sample people."""
    return DEMO_ACCOUNTS


def make_demo_accounts(accounts: Accounts) -> Mapping[str, str]:
    """Make those that are missing; what exists is not touched.

    Returns the password of each that was made: known here, and never again.
    """
    made = {}
    for wanted in DEMO_ACCOUNTS:
        if accounts.find(wanted.name) is None:
            made[wanted.name] = random_password()
            accounts.add(wanted.name, made[wanted.name], admin=wanted.admin)
    return made
