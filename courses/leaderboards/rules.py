"""Open the leaderboard of an assignment, change its rule, and close it.

The teacher's files, the metric and the split decide a score. None of them may change once there are
scores, with which later ones would not be comparable.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from typing import Final

from ...hub.errors import Conflict, InvalidInput
from ...hub.messages import units
from ...hub.records.audit import AuditAction
from ...hub.records.identity import Identity
from ...hub.records.json_value import Json
from ...hub.schemas.courses import BundleIn
from ...hub.schemas.coursework.leaderboards import LeaderboardIn, LeaderboardRuleOut
from ..files.transfer import bundle_of_body, store_bundle
from ..model.interfaces import Blobs
from ..model.leaderboards import EntryOutcome, Leaderboard, LeaderboardStore
from ..model.records import Folder
from ..roster.access import TEACHERS, CourseAccess, check_not_archived
from .evaluation import ONE_BY_ONE, WeightsEvaluation
from .outputs import rule_out

PROGRAM: Final = "leaderboard.py"
"""The teacher's file that builds the architecture and the hidden data."""
_SEED_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class LeaderboardRules:
    """The rules of leaderboards, which teachers set."""

    access: CourseAccess
    blobs: Blobs
    evaluation: WeightsEvaluation

    def rule(self, course: str, name: str) -> LeaderboardRuleOut:
        """The rule, for pages whose visitor may see the assignment."""
        return rule_out(course, name, self._store.rule(course, name))

    def open(
        self, who: Identity, course: str, name: str, body: LeaderboardIn
    ) -> LeaderboardRuleOut:
        """Open the leaderboard of an assignment, or change it; safe to repeat. For teachers.

        Raises:
            Conflict: the course is archived, or submissions have scores already, which another
                metric or other hidden data would not be comparable with.
            NotFound: there is no such assignment.
            InvalidInput, TooLarge: of the files.
        """
        membership = self.access.membership(who, course, TEACHERS)
        check_not_archived(membership.course)
        self.access.assignment(membership, name)
        target = f"{course}/{name}"
        self.access.check_unchanged(who, AuditAction.LEADERBOARD_SET, target)
        with ONE_BY_ONE:
            known = self._store.rule(course, name)
            rule = Leaderboard(
                course=course,
                assignment=name,
                metric=body.metric,
                per_day=body.per_day,
                public_percent=body.public_percent,
                counts=body.counts,
                private_after_due=body.private_after_due,
                files=self._files(body, known),
                seed=known.seed if known else secrets.token_hex(_SEED_BYTES),
                by=who.name,
                at=self.access.context.clock(),
            )
            if known is not None and _test_of(known) != _test_of(rule):
                self._check_no_scores(rule)
            after: dict[str, Json] = {
                "metric": rule.metric,
                "per_day": rule.per_day,
                "public_percent": rule.public_percent,
                "counts": rule.counts,
                "private_after_due": rule.private_after_due,
                "files": rule.files.sha256,
            }
            before: dict[str, Json] = {"per_day": known.per_day} if known else {}
            change = self.access.audit_entry(
                who, AuditAction.LEADERBOARD_SET, target, before=before, after=after
            )
            self._store.put_rule(rule, change=change)
        return rule_out(course, name, rule)

    def close(self, who: Identity, course: str, name: str) -> LeaderboardRuleOut:
        """Take no further submissions; the table stays. Safe to repeat. For teachers."""
        known = self._store.rule(course, name)
        if known is None:
            self.access.assignment(self.access.membership(who, course, TEACHERS), name)
            return rule_out(course, name, None)
        body = LeaderboardIn(
            metric=known.metric,
            per_day=0,
            public_percent=known.public_percent,
            counts=known.counts,
            private_after_due=known.private_after_due,
        )
        return self.open(who, course, name, body)

    def _files(self, body: BundleIn, known: Leaderboard | None) -> Folder:
        bundle = bundle_of_body(body)
        if bundle is None:
            if known is None:
                raise _no_program("There are no files for the leaderboard.")
            return known.files
        if PROGRAM not in bundle.files:
            raise _no_program(f"The files of the leaderboard have no {PROGRAM}.")
        return store_bundle(self.blobs, bundle)

    def _check_no_scores(self, rule: Leaderboard) -> None:
        entries = self.evaluation.entries(rule.course, rule.assignment)
        comparable = EntryOutcome.WAITING, EntryOutcome.SCORED
        count = sum(each.outcome in comparable for each in entries)
        if count:
            raise Conflict(
                f"{units.count(count, 'submission')} of {rule.assignment} would not be comparable "
                "with later ones under another metric, other files or another split.",
                accepted="The same metric, files and split; or a leaderboard of another "
                "assignment.",
            )

    @property
    def _store(self) -> LeaderboardStore:
        return self.access.store.leaderboards


def _test_of(board: Leaderboard) -> tuple[object, ...]:
    return board.metric, board.public_percent, board.files.sha256


def _no_program(sentence: str) -> InvalidInput:
    return InvalidInput(
        sentence,
        accepted=f"A folder with {PROGRAM}, which builds the architecture and the hidden data.",
        field="files",
    )
