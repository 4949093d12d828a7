"""The list of all pages: address, user, and required content.

A test compares it with the routes of the application: add new pages here.
"""

from __future__ import annotations

from dataclasses import dataclass

SERVICE = "/services/carrel"
BUTTON, LINK, SUMMARY = "button", "link", "summary"
_START = (BUTTON, "^(Start|Wait for it)$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """One page as one user sees it.

    Attributes:
        name: of its screenshots.
        route: as the application declares it, or JupyterHub's template.
        at: its address, if different from the route; ``{running}`` and the like are ids of the
            filled installation.
        who: the user; empty for no sign-in.
        shows: text that is visible after loading.
        main: role and name (a pattern) of the main action; Tab leads there.
        writes: label and text of the fields to fill in at ``at``.
        then: role and name (a pattern) of buttons to press after that.
        status: of the response.
        stays: keep the page from redirecting by itself.
    """

    name: str
    route: str
    who: str
    shows: str
    main: tuple[str, str]
    at: str = ""
    writes: tuple[tuple[str, str], ...] = ()
    then: tuple[tuple[str, str], ...] = ()
    status: int = 200
    stays: bool = False

    @property
    def ours(self) -> bool:
        """A page of the service; others are JupyterHub's in our layout."""
        return self.route.startswith(SERVICE)

    def address(self, ids: dict[str, str]) -> str:
        return (self.at or self.route).format(**ids)


def _page(
    name: str, route: str, who: str, shows: str, main: tuple[str, str], *, at: str = ""
) -> Place:
    where = f"{SERVICE}{at}" if at else ""
    return Place(name=name, route=f"{SERVICE}{route}", who=who, shows=shows, main=main, at=where)


def _request(name: str, request: str, who: str, shows: str, main: tuple[str, str]) -> Place:
    return _page(name, "/requests/{request_id}", who, shows, main, at=f"/requests/{{{request}}}")


def _admin(name: str, route: str, shows: str, main: tuple[str, str], query: str = "") -> Place:
    at = f"/admin{route}{query}" if query else ""
    return _page(name, f"/admin{route}", "admin", shows, main, at=at)


_SERVICE_PAGES = (
    _page("desk-newcomer", "/", "newcomer", "You have no session", _START),
    _page("desk-held", "/", "student2", "held for", (BUTTON, "Claim")),
    _page("desk-waiting", "/", "student3", "Queued at position", (LINK, "Watch")),
    _page("desk-teacher", "/", "teacher", "training.ipynb", _START),
    _page("desk-admin", "/", "admin", "training.ipynb", _START),
    _page("desk", "/", "student1", "Keep it", (BUTTON, "Keep it")),
    _page("wait", "/wait/{server}", "student3", "Position", (BUTTON, "Cancel"), at="/wait/-"),
    _page("submit", "/submit", "student1", "Submit a job", (BUTTON, "Submit")),
    _page("gallery", "/gallery", "student1", "published for others", (BUTTON, "Search")),
    _page(
        "gallery-item",
        "/gallery/{item_id}",
        "student1",
        "Train the sample network",
        (LINK, "^Run it"),
        at="/gallery/{item}",
    ),
    _page(
        "gallery-notebook",
        "/gallery/{item_id}/notebook",
        "student1",
        "Without outputs",
        (LINK, "Download it"),
        at="/gallery/{item}/notebook",
    ),
    _page(
        "gallery-publish",
        "/gallery/publish",
        "student1",
        "Who may see it",
        (BUTTON, "^Publish$"),
        at="/gallery/publish?request={done}",
    ),
    _page("images", "/images", "student1", "directly on this machine", (LINK, "^Desk$")),
    _page("schedules", "/schedules", "student1", "every week on Mon", (BUTTON, "^Pause")),
    _page(
        "schedules-none", "/schedules", "newcomer", "You have no schedules", (LINK, "^Requests$")
    ),
    _page(
        "open",
        "/open",
        "student1",
        "What this link opens",
        (BUTTON, "^Open in"),
        at="/open?url=https://git.example.org/course&path=week1",
    ),
    _page(
        "open-link",
        "/open/link",
        "student1",
        "A badge in Markdown",
        (BUTTON, "^Make the link$"),
        at="/open/link?url=https://git.example.org/course",
    ),
    _page("secrets", "/secrets", "teacher", "HF_TOKEN", (BUTTON, "^Set the secret$")),
    _page("requests", "/requests", "student1", "training.ipynb", (LINK, "training.ipynb")),
    _page(
        "requests-all",
        "/requests",
        "admin",
        "student2",
        (BUTTON, "Show"),
        at="/requests?whose=all&state=live",
    ),
    _page("requests-none", "/requests", "newcomer", "You have no requests yet", (BUTTON, "Show")),
    _request("job-running", "running", "student1", "running", (BUTTON, "Cancel")),
    _request("job-queued", "queued", "student1", "queued", (BUTTON, "Cancel")),
    _request("job-failed", "broken", "student1", "ValueError", (BUTTON, "Run")),
    _request("job-succeeded", "done", "student1", "result.csv", (LINK, "result.csv")),
    _request("job-cancelled", "cut", "student1", "cancelled", (BUTTON, "Run")),
    _request("job-sweep", "sweep", "student1", "best: trial 5", (LINK, "CSV")),
    _page(
        "compare",
        "/compare",
        "student1",
        "The runs differ",
        (BUTTON, "^Compare$"),
        at="/compare?a={done}&b={broken}",
    ),
    _request("session", "session", "student1", "running", (BUTTON, "Stop")),
    _request("session-held", "held", "student2", "held", (BUTTON, "Claim")),
    _page(
        "notebook",
        "/requests/{request_id}/notebook",
        "student1",
        "Scripts of the notebook do not run here",
        (LINK, "Download it"),
        at="/requests/{done}/notebook",
    ),
    _page("usage", "/usage", "student1", "device-hours", (BUTTON, "Show")),
    _page("usage-none", "/usage", "newcomer", "No device was used", (BUTTON, "Show")),
    _page("usage-all", "/usage", "admin", "student1", (BUTTON, "Show"), at="/usage?whose=all"),
    _page("report", "/report", "admin", "Device-hours", (BUTTON, "^Show$")),
    _page("what-if", "/report/what-if", "admin", "two such nodes", (BUTTON, "^Replay$")),
    _page("efficiency", "/efficiency", "newcomer", "You have held", (BUTTON, "^Show$")),
    _page("forecasts", "/forecasts", "newcomer", "all users together", (LINK, "^Usage$")),
    _page(
        "course",
        "/course/{group}",
        "teacher",
        "Course cs101",
        (LINK, "All requests of cs101"),
        at="/course/cs101",
    ),
    _page("courses", "/courses", "admin", "seminar", (BUTTON, "Preview")),
    _page("courses-teacher", "/courses", "teacher", "cs101", (LINK, "cs101")),
    _page(
        "teach",
        "/course/{course}/teach",
        "admin",
        "1 of 1",
        (LINK, "Release an assignment"),
        at="/course/seminar/teach",
    ),
    _page(
        "teach-people",
        "/course/{course}/people",
        "admin",
        "Cleo",
        (BUTTON, "Preview"),
        at="/course/seminar/people",
    ),
    _page(
        "release",
        "/course/{course}/release",
        "admin",
        "the solution gets all",
        (BUTTON, "Save"),
        at="/course/seminar/release?assignment=ps1",
    ),
    _page(
        "release-new",
        "/course/{course}/release",
        "admin",
        "Such as ps1",
        (BUTTON, "^Release$"),
        at="/course/seminar/release",
    ),
    _page(
        "grading",
        "/course/{course}/grading/{assignment}",
        "admin",
        "Not graded yet",
        (BUTTON, "Grade"),
        at="/course/seminar/grading/ps1",
    ),
    _page(
        "graded",
        "/course/{course}/grading/{assignment}/student/{person}",
        "admin",
        "this one is graded",
        (BUTTON, "Grade this submission"),
        at="/course/seminar/grading/ps1/student/student3",
    ),
    _page(
        "assignment",
        "/course/{course}/assignment/{assignment}",
        "student3",
        "this one is graded",
        (BUTTON, "Submit"),
        at="/course/seminar/assignment/ps1",
    ),
    _page(
        "assignment-text",
        "/course/{course}/assignment/{assignment}/text/{name:file}",
        "student3",
        "Reading it here does not fetch it.",
        (LINK, "^ps1$"),
        at="/course/seminar/assignment/ps1/text/ps1.ipynb",
    ),
    _page(
        "leaderboard",
        "/course/{course}/assignment/{assignment}/leaderboard",
        "student3",
        "You have not submitted weights yet.",
        (BUTTON, "Submit"),
        at="/course/seminar/assignment/ps1/leaderboard",
    ),
    _page(
        "regrades-own",
        "/course/{course}/assignment/{assignment}/regrades",
        "student3",
        "The graders of the course read it",
        (BUTTON, "Ask for a regrade"),
        at="/course/seminar/assignment/ps1/regrades",
    ),
    _page(
        "gradebook",
        "/course/{course}/gradebook",
        "admin",
        "not graded",
        (LINK, "Download as a table"),
        at="/course/seminar/gradebook",
    ),
    _page(
        "rehearsal",
        "/course/{course}/rehearsal",
        "admin",
        "This course has not been rehearsed yet.",
        (BUTTON, "Rehearse"),
        at="/course/seminar/rehearsal",
    ),
    _page(
        "regrades",
        "/course/{course}/regrades",
        "admin",
        "There are no regrade requests.",
        (LINK, "People"),
        at="/course/seminar/regrades",
    ),
    _page(
        "feedback",
        "/course/{course}/assignment/{assignment}/feedback/{submission}/{name}",
        "student3",
        "Feedback on ps1",
        (LINK, "^ps1$"),
        at="/course/seminar/assignment/ps1/feedback/1/ps1.html",
    ),
    _admin("admin", "", "vision", (LINK, "Change")),
    _admin("admin-group", "", "Change cs101", (BUTTON, "Preview"), "?edit=cs101"),
    _admin("admin-people", "/people", "newcomer", (BUTTON, "Create the account")),
    _admin("admin-people-import", "/people/import", "one-time link", (BUTTON, "^Preview$")),
    _page("programs", "/programs", "student1", "You have no programs", (LINK, "My account")),
    _page("account", "/account", "newcomer", "Current password", (BUTTON, "Change the password")),
    _page("account-compiled", "/account", "student1", "digits.ipynb", (BUTTON, "^Delete all$")),
    _page(
        "notifications",
        "/notifications",
        "student1",
        "hooks.example.edu",
        (LINK, "^My account$"),
    ),
    _page("password", "/password", "", "Set your password", (BUTTON, "Set the password")),
    _page(
        "admin-person",
        "/admin/person/{name}",
        "admin",
        "Groups and roles",
        (BUTTON, "^Preview$"),
        at="/admin/person/newcomer",
    ),
    _admin(
        "admin-announcements", "/announcements", "The pool grows on Friday.", (BUTTON, "^Announce$")
    ),
    _admin("admin-pool", "/pool", "uncorrectable", (LINK, "Change")),
    _admin("admin-device", "/pool", "Quarantine", (BUTTON, "Drain"), "?target={drained}"),
    _page("calendar", "/calendar", "student1", "Reservations", (BUTTON, "^Show$")),
    _page(
        "calendar-week",
        "/calendar",
        "admin",
        "Reservations",
        (LINK, "Reserve devices"),
        at="/calendar?show=week",
    ),
    _admin("admin-calendar", "/calendar", "winter (now)", (BUTTON, "Save term")),
    _admin("admin-semester", "/semester", "Proposed reservations", (BUTTON, "^Show$")),
    _admin("admin-use", "/use", "Devices on lease", (BUTTON, "Show")),
    _admin("admin-health", "/health", "All parts respond", (LINK, "^Doctor$")),
    _admin("admin-doctor", "/doctor", "Checks of this machine", (BUTTON, "Run the checks")),
    _admin("admin-backup", "/backup", "Latest backups", (BUTTON, "Back up now")),
    _admin("admin-audit", "/audit", "A new fan on Friday.", (BUTTON, "Show")),
    Place(
        name="requests-cancel",
        route=f"{SERVICE}/requests",
        who="student1",
        shows="running requests are stopped",
        main=(BUTTON, "Cancel"),
        then=((BUTTON, "Cancel all in this list"),),
    ),
    Place(
        name="submit-parameters",
        route=f"{SERVICE}/submit",
        who="student1",
        shows="passes over the training data",
        main=(BUTTON, "^Submit$"),
        then=((BUTTON, "digits.ipynb"),),
    ),
    Place(
        name="submit-more",
        route=f"{SERVICE}/submit",
        who="student1",
        shows="When another group needs its devices",
        main=(BUTTON, "^Submit$"),
        then=((SUMMARY, "More settings"),),
    ),
    Place(
        name="admin-group-limits",
        route=f"{SERVICE}/admin",
        at=f"{SERVICE}/admin?edit=vision",
        who="admin",
        shows="Device models",
        main=(BUTTON, "Preview"),
        then=((SUMMARY, "More limits"),),
    ),
    Place(
        name="admin-calendar-reserve",
        route=f"{SERVICE}/admin/calendar",
        who="admin",
        shows="Shown to the group.",
        main=(BUTTON, "^Reserve$"),
        then=((SUMMARY, "Reserve devices"),),
    ),
    Place(
        name="admin-group-preview",
        route=f"{SERVICE}/admin",
        at=f"{SERVICE}/admin?edit=cs101",
        who="admin",
        writes=(("Max devices per member", "1"),),
        shows="Effect of this change",
        main=(BUTTON, "^Save"),
        then=((BUTTON, "Preview"),),
    ),
    Place(
        name="admin-device-preview",
        route=f"{SERVICE}/admin/pool",
        at=f"{SERVICE}/admin/pool?target={{drained}}",
        who="admin",
        shows="Effect of this change",
        main=(BUTTON, "^Drain$"),
        then=((BUTTON, "Preview the drain"),),
    ),
    Place(
        name="courses-preview",
        route=f"{SERVICE}/courses",
        who="admin",
        writes=(("Name", "biology"), ("Max quota", "3")),
        shows="biology is made, group and course, with at most 3 devices.",
        main=(BUTTON, "Create the course"),
        then=((BUTTON, "Preview"),),
    ),
    Place(
        name="graded-preview-none",
        route=f"{SERVICE}/course/{{course}}/grading/{{assignment}}/student/{{person}}/preview",
        at=f"{SERVICE}/course/seminar/grading/ps1/student/student3/preview",
        who="admin",
        shows="has not been graded yet",
        main=(LINK, "To the desk"),
        status=404,
    ),
    Place(
        name="manual-grading-none",
        route=f"{SERVICE}/course/{{course}}/grading/{{assignment}}/manual/{{number}}",
        at=f"{SERVICE}/course/seminar/grading/ps1/manual/10000",
        who="admin",
        shows="There is no graded submission with this number.",
        main=(LINK, "To the desk"),
        status=404,
    ),
    Place(
        name="regrade-none",
        route=f"{SERVICE}/course/{{course}}/regrades/{{regrade}}",
        at=f"{SERVICE}/course/seminar/regrades/9",
        who="admin",
        shows="There is no regrade request 9.",
        main=(LINK, "To the desk"),
        status=404,
    ),
    Place(
        name="not-found",
        route=f"{SERVICE}/requests/{{request_id}}",
        at=f"{SERVICE}/requests/j-00000000",
        who="student1",
        shows="There is no request",
        main=(LINK, "To the desk"),
        status=404,
    ),
)
_HUB_PAGES = (
    Place(
        name="hub-sign-in",
        route="login.html",
        at=f"{SERVICE}/",
        who="",
        shows="Sign in",
        main=(BUTTON, "Sign in"),
    ),
    Place(
        name="hub-home",
        route="home.html",
        at="/hub/home",
        who="newcomer",
        shows="desk",
        main=(LINK, "desk"),
        stays=True,
    ),
    Place(
        name="hub-admin",
        route="admin.html",
        at="/hub/admin",
        who="admin",
        shows="Administration of Carrel",
        main=(LINK, "Administration of Carrel"),
        stays=True,
    ),
    Place(
        name="hub-tokens",
        route="token.html",
        at="/hub/token",
        who="newcomer",
        shows="ends after 90 days at the latest",
        main=(BUTTON, "Request new API token"),
    ),
    Place(
        name="hub-start",
        route="spawn.html",
        at="/hub/spawn",
        who="newcomer",
        shows="desk",
        main=(LINK, "desk"),
        stays=True,
    ),
    Place(
        name="hub-pending",
        route="spawn_pending.html",
        at="/hub/spawn-pending/student3",
        who="student3",
        shows="queued or starting",
        main=(LINK, "position in the queue"),
        stays=True,
    ),
    Place(
        name="hub-not-running",
        route="not_running.html",
        at="/user/newcomer/lab",
        who="newcomer",
        shows="not running",
        main=(LINK, "Back to the desk"),
        status=424,
    ),
    Place(
        name="hub-error",
        route="404.html",
        at="/hub/nothing",
        who="newcomer",
        shows="Page not found",
        main=(LINK, "Back to the desk"),
        status=404,
    ),
)
PAGES = (*_SERVICE_PAGES, *_HUB_PAGES)

_GRADING = f"{SERVICE}/course/{{course}}/grading/{{assignment}}"
_ASSIGNMENT = f"{SERVICE}/course/{{course}}/assignment/{{assignment}}"
NO_PAGES = {
    f"{SERVICE}": "leads to the desk",
    f"{SERVICE}/login": "leads to the hub",
    f"{SERVICE}/oauth_callback": "comes back from it",
    f"{SERVICE}/healthz": "JSON",
    f"{SERVICE}/readyz": "JSON",
    f"{SERVICE}/metrics": "plain text",
    "/healthz": "JSON",
    "/readyz": "JSON",
    "/metrics": "plain text",
    f"{SERVICE}/announcements": "a part of every page of JupyterHub",
    f"{SERVICE}/notifications/stop/{{code}}": "opened by a link in a message",
    f"{SERVICE}/notifications/confirm/{{code}}": "opened by a link in a message",
    f"{SERVICE}/events": "a stream",
    f"{SERVICE}/wait/{{server}}/events": "a stream",
    f"{SERVICE}/wait/{{server}}/enter": "leads into the session",
    f"{SERVICE}/requests.csv": "a table",
    f"{SERVICE}/requests/{{request_id}}/feed": "a stream",
    f"{SERVICE}/requests/{{request_id}}/why": "a part of a request that waits",
    f"{SERVICE}/requests/{{request_id}}/receipt": "a part of the page of a job",
    f"{SERVICE}/requests/{{request_id}}/ledger": "a part of the usage page",
    f"{SERVICE}/requests/{{request_id}}/sharing": "a part of the page of a sweep",
    f"{SERVICE}/requests/{{request_id}}/workers": "a part of the page of a job",
    f"{SERVICE}/requests/{{request_id}}/trials.csv": "a table",
    f"{SERVICE}/requests/{{request_id}}/outputs/{{event_id}}": "in a sandboxed frame",
    f"{SERVICE}/requests/{{request_id}}/notebook/content": "in a sandboxed frame",
    f"{SERVICE}/requests/{{request_id}}/cells/{{cell}}/outputs/{{number}}": "in a sandboxed frame",
    f"{SERVICE}/gallery/{{item_id}}/notebook/content": "in a sandboxed frame",
    f"{SERVICE}/desk/live": "a part of the desk",
    f"{SERVICE}/submit/home": "a part of the form",
    f"{SERVICE}/admin/live": "a part of the quota tree",
    f"{SERVICE}/usage/live": "a part of the usage page",
    f"{SERVICE}/usage/proof": "a file",
    f"{SERVICE}/report/csv": "a file",
    f"{SERVICE}/admin/semester/csv": "a file",
    f"{SERVICE}/report/what-if/csv": "a file",
    f"{SERVICE}/report/what-if/result": "a part of the page of a replay",
    f"{SERVICE}/course/{{course}}/assignment/{{assignment}}/proof": "a file",
    f"{_ASSIGNMENT}/official-check/{{check}}/receipt": "a file",
    f"{SERVICE}/course/{{group}}/live": "a part of a course's page",
    f"{SERVICE}/course/{{course}}/gradebook/csv": "a table",
    f"{SERVICE}/course/{{course}}/rehearsal/live": "a part of the page of rehearsals",
    f"{_GRADING}/live": "a part of a grading's page",
    f"{_GRADING}/csv": "a table",
    f"{_GRADING}/manual": "leads to the first student to grade by hand",
    f"{_GRADING}/manual/{{number}}/notebook/{{name}}": "in a sandboxed frame",
    f"{_GRADING}/student/{{person}}/file/{{submission}}/{{name:file}}": "a file",
    f"{_GRADING}/student/{{person}}/preview/{{name}}/content": "in a sandboxed frame",
    f"{_ASSIGNMENT}/leaderboard/live": "a part of a leaderboard's page",
    f"{_ASSIGNMENT}/live": "a part of an assignment's page",
    f"{_ASSIGNMENT}/live/work": "another part of it",
    f"{_ASSIGNMENT}/hand-out": "a .zip",
    f"{_ASSIGNMENT}/submission/{{submission}}": "a .zip",
    f"{_ASSIGNMENT}/content/{{name:file}}": "in a sandboxed frame",
    f"{_ASSIGNMENT}/feedback/{{submission}}/{{name}}/content": "in a sandboxed frame",
    f"{SERVICE}/admin/use/live": "a part of the page about use and waits",
    f"{SERVICE}/admin/health/live": "a part of the page about health",
    f"{SERVICE}/admin/doctor/live": "a part of the doctor's page",
    f"{SERVICE}/admin/backup/live": "a part of the page of backups",
    f"{SERVICE}/admin/pool/live": "a part of the pool's page",
    f"{SERVICE}/help": "pages made by Sphinx, tested below the list",
    f"{SERVICE}/static": "files",
    f"{SERVICE}/static/figures": "files",
    f"{SERVICE}/static/theme.css": "a style sheet",
}
"""Other routes that are read, and why they are not pages of their own."""
