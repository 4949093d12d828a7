"""The services of courses, one for each feature."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..hub.accounts.store import Accounts
from ..hub.files.safe_fs import Owner
from ..hub.runtime.context import Context
from .administration.folders import CourseFolders
from .administration.service import CourseAdministration
from .assignments.overview import AssignmentOverview
from .assignments.service import AssignmentService
from .deadlines.service import DeadlineService
from .feedback.delivery import FeedbackDelivery
from .feedback.service import FeedbackService
from .gradebook.open_writers import OpenCourseBook, OpenWriters
from .grading_runs.check_service import CheckService
from .grading_runs.gradebook_overview import GradebookOverview
from .grading_runs.service import GradingService
from .leaderboards.evaluation import WeightsEvaluation
from .leaderboards.rules import LeaderboardRules
from .leaderboards.service import LeaderboardService
from .leaderboards.submissions import WeightsSubmissions
from .manual_grading.service import ManualGradingService
from .model.interfaces import Blobs, CourseStore
from .official_checks.service import OfficialCheckService
from .prefixes.service import PrefixService
from .regrades.service import RegradeService
from .rehearsals.service import RehearsalService
from .roster.access import CourseAccess
from .roster.class_list import ClassList
from .roster.missing_accounts import MissingAccounts
from .roster.service import RosterService
from .sandbox.interface import SandboxFactory
from .submissions.service import SubmissionService


@dataclass(frozen=True, slots=True, kw_only=True)
class CourseServices:
    """Everything that users can do with courses, with their rights checked.

    The methods of the services are blocking functions that the web layer calls in a thread pool.
    Each completes, or raises a ``CarrelError`` and changes nothing.
    """

    access: CourseAccess
    blobs: Blobs
    class_list: ClassList
    administration: CourseAdministration
    roster: RosterService
    missing_accounts: MissingAccounts
    assignments: AssignmentService
    overview: AssignmentOverview
    deadlines: DeadlineService
    submissions: SubmissionService
    checks: CheckService
    official_checks: OfficialCheckService
    leaderboards: LeaderboardService
    leaderboard_rules: LeaderboardRules
    leaderboard_submissions: WeightsSubmissions
    grading: GradingService
    manual_grading: ManualGradingService
    gradebook: GradebookOverview
    feedback: FeedbackService
    delivery: FeedbackDelivery
    regrades: RegradeService
    folders: CourseFolders
    prefixes: PrefixService
    rehearsals: RehearsalService

    @classmethod
    def build(
        cls,
        context: Context,
        store: CourseStore,
        blobs: Blobs,
        *,
        sandboxes: SandboxFactory | None = None,
        root: Path | None = None,
        owner: Owner | None = None,
        accounts: Accounts | None = None,
        gradebooks: OpenCourseBook | None = None,
        prefixes: Path | None = None,
    ) -> CourseServices:
        """Connect the services.

        Args:
            sandboxes: in which releases are checked; None to check none.
            root: the folder of all courses; None where nothing is graded.
            owner: the account that sessions run as, where that is not the service's.
            accounts: Carrel's own accounts; None where the site uses another authenticator.
            gradebooks: opens the gradebook of a course; None where nothing is graded.
            prefixes: the folder of saved variables; None where jobs share no cells.
        """
        access, class_list = CourseAccess(context, store), ClassList(context, store)
        missing_accounts = MissingAccounts(access, class_list, accounts)
        roster = RosterService(access, class_list, missing_accounts)
        grading = GradingService(access, class_list, blobs, root)
        delivery, evaluation = FeedbackDelivery(access, blobs), WeightsEvaluation(access)
        shared = PrefixService(access, blobs, prefixes, root, owner)
        if prefixes is not None:
            context.prefixes.provider = shared
        return cls(
            access=access,
            blobs=blobs,
            class_list=class_list,
            administration=CourseAdministration(access, class_list, roster),
            roster=roster,
            missing_accounts=missing_accounts,
            assignments=AssignmentService(access, blobs, sandboxes, shared),
            overview=AssignmentOverview(access, delivery),
            deadlines=DeadlineService(access, class_list),
            submissions=SubmissionService(access, class_list, blobs),
            checks=CheckService(access, blobs),
            official_checks=OfficialCheckService(access, blobs),
            leaderboards=LeaderboardService(access, class_list, evaluation),
            leaderboard_rules=LeaderboardRules(access, blobs, evaluation),
            leaderboard_submissions=WeightsSubmissions(access, blobs, evaluation),
            grading=grading,
            manual_grading=ManualGradingService(
                access, grading, OpenWriters(gradebooks) if gradebooks else None, root
            ),
            feedback=FeedbackService(access, grading, delivery, blobs, root),
            delivery=delivery,
            gradebook=GradebookOverview(class_list, grading),
            regrades=RegradeService(access, delivery),
            folders=CourseFolders(access, blobs, root, owner),
            prefixes=shared,
            rehearsals=RehearsalService(access),
        )
