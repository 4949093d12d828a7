"""Which roles must succeed, from the completion policies of OpenPAI's task roles.

OpenPAI ends a job with success when ``minSucceededInstances`` of *one* task role have succeeded (by
default all its instances; -1: never by this role), and with failure when ``minFailedInstances`` of
one have failed (by default 1; -1: never by this role). Carrel ends it when all members of the roles
that must succeed have succeeded, or one of them has failed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from .description import NotKept


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionPolicy:
    """The policy of a task role.

    Attributes:
        role: its name in Carrel.
        count: number of its instances.
        succeeded, failed: -1 or a number of instances; None where the file has none.
        line, field: of the policy in the file.
    """

    role: str
    count: int
    succeeded: int | None
    failed: int | None
    line: int
    field: str

    def not_kept(self, reason: str) -> NotKept:
        return NotKept(line=self.line, field=self.field, reason=reason)


def required_roles(
    policies: Sequence[CompletionPolicy],
) -> tuple[tuple[str, ...], list[NotKept]]:
    """Return the roles that must succeed, none for all, and what of the policies is not kept.

    1. the first role with a number of instances that must succeed
    2. or the roles that can end the job because the file does not say -1
    3. or, if all say -1, those whose failure fails the job
    """
    explicit = [p for p in policies if p.succeeded is not None and p.succeeded > 0]
    by_default = [p for p in policies if p.succeeded is None]
    intolerant = [p for p in policies if p.failed != -1]
    chosen = explicit[:1] or by_default or intolerant or list(policies)
    dropped = [reason for policy in policies for reason in _differences(policy, policy in chosen)]
    for policy in [*explicit[1:], *by_default] if explicit else []:
        dropped.append(
            policy.not_kept(f"The job succeeds with {explicit[0].role}, not with this role.")
        )
    if not explicit and len(by_default) > 1:
        dropped.append(
            by_default[0].not_kept(
                "The job succeeds when all of these roles have: "
                f"{', '.join(p.role for p in by_default)}. In OpenPAI, one is enough."
            )
        )
    names = tuple(policy.role for policy in chosen)
    return (() if len(names) == len(policies) else names), dropped


def _differences(policy: CompletionPolicy, required: bool) -> list[NotKept]:
    found = []
    failed = 1 if policy.failed is None else policy.failed
    if required and failed == -1:
        found.append(policy.not_kept("A failed instance fails the job."))
    if required and failed > 1:
        found.append(policy.not_kept(f"1 failed instance fails the job, not {failed}."))
    if not required and failed != -1:
        found.append(policy.not_kept(f"A failed instance of {policy.role} does not fail the job."))
    wanted = policy.succeeded or 0
    if required and 0 < wanted < policy.count:
        found.append(
            policy.not_kept(f"All {policy.count} instances must succeed, not only {wanted}.")
        )
    return found
