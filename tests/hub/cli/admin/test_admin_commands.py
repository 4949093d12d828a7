"""``carrel user`` and ``carrel group`` on a state folder, with a stand-in for the hub."""

from __future__ import annotations

import getpass
import json
from contextlib import closing
from pathlib import Path

import pytest

from carrel.hub.accounts import Accounts
from carrel.hub.cli.admin import members
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import NotFound, Unavailable
from carrel.hub.interfaces.jupyterhub import HubUser
from carrel.hub.records.audit import ChangeFilter
from carrel.hub.store import open_store

from ...doubles import device
from .invocation import carrel, invoke, refusal


class FakeHub:
    """A hub with users and groups; with ``down`` it does not answer."""

    def __init__(self) -> None:
        self.members: dict[str, set[str]] = {}
        self.down = False

    def _user(self, name: str) -> HubUser:
        return HubUser(name=name, admin=False, groups=frozenset(self.members[name]), servers={})

    def _check(self) -> None:
        if self.down:
            raise Unavailable("JupyterHub does not answer.")

    def user(self, name: str, *, for_page: bool = False) -> HubUser:
        self._check()
        if name not in self.members:
            raise NotFound(f"no {name}")
        return self._user(name)

    def users(self, *, within: float = 0.0) -> tuple[HubUser, ...]:
        self._check()
        return tuple(self._user(name) for name in self.members)

    def add_user(self, name: str, *, admin: bool) -> None:
        self._check()
        assert not admin
        self.members.setdefault(name, set())

    def add_users(self, names: tuple[str, ...]) -> None:
        for name in names:
            self.add_user(name, admin=False)

    def remove_user(self, name: str) -> None:
        self._check()
        self.members.pop(name, None)

    def add_to_group(self, group: str, users: tuple[str, ...]) -> None:
        for user in users:
            self.members[user].add(group)

    def remove_from_group(self, group: str, users: tuple[str, ...]) -> None:
        for user in users:
            self.members[user].discard(group)

    def close(self) -> None: ...


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> FakeHub:
    found = FakeHub()
    monkeypatch.setattr(members, "hub_of", lambda _: found)
    return found


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateFolder:
    found = StateFolder.at(tmp_path / "state")
    found.create()
    Settings().save(found)
    monkeypatch.setenv("CARREL_STATE", str(found.root))
    return found


def signs_in(state: StateFolder, name: str, password: str) -> bool:
    with closing(Accounts(state.accounts)) as accounts:
        return accounts.sign_in(name, password) is not None


@pytest.mark.usefixtures("hub")
class TestUser:
    def test_an_account_gets_a_random_password_that_works(self, state: StateFolder) -> None:
        printed = carrel("user", "add", "Ada", "--admin")
        assert "Created the account ada (administrator)." in printed
        password = printed.rsplit(": ", 1)[1].strip()
        assert signs_in(state, "ada", password)

    def test_a_password_can_come_from_stdin_and_is_not_repeated(self, state: StateFolder) -> None:
        printed = carrel("user", "add", "ada", "--password-stdin", stdin="a long password\n")
        assert "long" not in printed
        assert signs_in(state, "ada", "a long password")

    @pytest.mark.parametrize("how", ["typed", "stdin", "random"])
    def test_passwd_sets_a_new_one(self, state: StateFolder, how: str) -> None:
        carrel("user", "add", "ada")
        new = "another password"
        if how == "typed":
            carrel("user", "passwd", "ada", stdin=f"{new}\n{new}\n")
        elif how == "stdin":
            carrel("user", "passwd", "ada", "--password-stdin", stdin=f"{new}\n")
        else:
            new = carrel("user", "passwd", "ada", "--random").rsplit(": ", 1)[1].strip()
        assert signs_in(state, "ada", new)

    def test_list_shows_the_accounts(self, state: StateFolder) -> None:
        assert "There are no accounts." in carrel("user", "list")
        carrel("user", "add", "ben")
        carrel("user", "add", "ada", "--admin")
        assert [line.split()[:2] for line in carrel("user", "list").splitlines()] == [
            ["NAME", "ROLE"],
            ["ada", "admin"],
            ["ben", "user"],
        ]
        rows = [json.loads(line) for line in carrel("user", "list", "--json").splitlines()]
        assert [(row["name"], row["role"]) for row in rows] == [("ada", "admin"), ("ben", "user")]

    def test_add_with_a_group_makes_a_member(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("group", "add", "cs101")
        carrel("user", "add", "ada", "--group", "cs101")
        assert hub.members == {"ada": {"cs101"}}

    def test_an_unknown_group_or_a_stopped_hub_creates_nothing(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        assert "cs102" in refusal("user", "add", "ada", "--group", "cs102")
        hub.down = True
        assert "does not answer" in refusal("user", "add", "ada", "--group", "cs101")
        assert "There are no accounts." in carrel("user", "list")

    def test_remove_takes_the_account_and_the_hub_s_user(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("user", "add", "ada")
        hub.members["ada"] = set()
        carrel("user", "remove", "ada")
        assert hub.members == {}
        assert "There is no account ada." in refusal("user", "remove", "ada")

    def test_remove_changes_nothing_while_the_hub_is_down(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("user", "add", "ada")
        hub.down = True
        assert "does not answer" in refusal("user", "remove", "ada")
        assert "ada" in carrel("user", "list")

    @pytest.mark.parametrize("name", ["../ada", "a/b", ""])
    def test_invalid_names_are_refused(self, state: StateFolder, name: str) -> None:
        assert "is not a valid username" in refusal("user", "add", name)


class TestAudit:
    """Changes at the command line are audited with the name of the system account."""

    def test_groups_and_people(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("group", "add", "cs101", "--max-devices", "4")
        carrel("group", "set", "cs101", "--max-devices", "2")
        carrel("user", "add", "ada", "--group", "cs101")
        carrel("group", "remove", "cs101")
        with closing(open_store(state.database)) as store:
            lines = store.changes(ChangeFilter())
        assert {line.who for line in lines} == {f"cli:{getpass.getuser()}"}
        assert [(str(line.action), line.target) for line in reversed(lines)] == [
            ("group set", "cs101"),
            ("group set", "cs101"),
            ("account add", "ada"),
            ("member add", "ada"),
            ("group remove", "cs101"),
        ]
        assert (lines[3].before, lines[3].after) == ({"max_devices": 4}, {"max_devices": 2})

    def test_the_last_administrator_is_removed_only_by_force(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("user", "add", "ada", "--admin")
        carrel("user", "add", "ben")
        assert "last administrator" in refusal("user", "remove", "ada")
        assert "ada" in carrel("user", "list")
        carrel("user", "remove", "ada", "--force")
        assert "ada" not in carrel("user", "list")

    def test_a_dry_run_previews_and_changes_nothing(self, state: StateFolder) -> None:
        carrel("group", "add", "cs", "--max-devices", "2")
        carrel("group", "add", "cs101", "--parent", "cs", "--max-devices", "1")
        said = carrel("group", "set", "cs101", "--max-devices", "4", "--dry-run")
        assert "cs, above it, allows 2 devices at one time" in said
        assert json.loads(carrel("group", "show", "cs101", "--json"))["max_devices"] == 1

    def test_a_group_below_keeps_the_one_above(self, state: StateFolder) -> None:
        carrel("group", "add", "cs")
        carrel("group", "add", "cs101", "--parent", "cs")
        assert "has 1 subgroup: cs101" in refusal("group", "remove", "cs")


class TestGroup:
    def test_its_idle_time_is_set_shown_and_switched_off(self, state: StateFolder) -> None:
        carrel("group", "add", "cs101", "--idle", "45m")
        assert "Idle warning after    45m" in carrel("group", "show", "cs101")
        carrel("group", "set", "cs101", "--max-devices", "2")
        assert json.loads(carrel("group", "show", "cs101", "--json"))["idle_seconds"] == 2700
        carrel("group", "set", "cs101", "--idle", "0")
        assert json.loads(carrel("group", "show", "cs101", "--json"))["idle_seconds"] == 0
        assert "Idle warning after    never" in carrel("group", "show", "cs101")

    def test_a_group_is_created_changed_and_shown(self, state: StateFolder, hub: FakeHub) -> None:
        hub.members = {"ada": set(), "ben": {"cs101"}}
        carrel("group", "add", "cs", "--max-devices", "8")
        carrel(
            *("group", "add", "cs101", "--parent", "cs", "--max-devices", "4"),
            *("--max-time", "1h30m", "--member", "ada"),
        )
        carrel(
            *("group", "set", "cs101", "--max-devices", "6", "--teacher", "grace"),
            *("--teacher", "alan", "--remove-member", "ben"),
        )
        carrel("group", "set", "cs101", "--remove-teacher", "alan")
        assert json.loads(carrel("group", "show", "cs101", "--json")) == {
            "name": "cs101",
            "parent": "cs",
            "max_devices": 6,
            "max_devices_per_user": 1,
            "max_seconds": 5400,
            "idle_seconds": 1800,
            "guaranteed": 0,
            "borrowing": None,
            "lending": None,
            "weight": 1.0,
            "models": None,
            "max_sessions": None,
            "sessions_borrow": False,
            "budget": None,
            "programs": False,
            "teachers": ["grace"],
            "members": ["ada"],
        }

    def test_lending_and_weight_are_set_shown_and_reset(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("group", "add", "lab", "--max-devices", "4", "--guaranteed", "2", "--lend", "1")
        carrel(
            *("group", "set", "lab", "--borrow", "1", "--weight", "2.5", "--max-sessions", "1"),
            "--sessions-borrow",
        )
        shown = carrel("group", "show", "lab").splitlines()
        assert [line.split()[-1] for line in shown[6:14]] == [
            "2",
            "1",
            "1",
            "2.5",
            "all",
            "1",
            "none",
            "yes",
        ]
        carrel("group", "set", "lab", "--borrow", "any", "--lend", "all", "--max-sessions", "any")
        found = json.loads(carrel("group", "show", "lab", "--json"))
        assert [found[name] for name in ("borrowing", "lending", "max_sessions")] == [None] * 3
        assert (found["guaranteed"], found["weight"], found["sessions_borrow"]) == (2, 2.5, True)

    def test_models_are_those_of_the_pool(self, state: StateFolder, hub: FakeHub) -> None:
        with closing(open_store(state.database)) as store:
            store.sync_devices("local", [device(0), device(1)])
        carrel("group", "add", "lab", "--models", "Simulated GPU")
        assert json.loads(carrel("group", "list", "--json"))["models"] == ["Simulated GPU"]
        assert "Models of the pool: Simulated GPU." in refusal(
            *("group", "set", "lab", "--models", "H900,Simulated GPU")
        )
        carrel("group", "set", "lab", "--models", "all")
        assert json.loads(carrel("group", "list", "--json"))["models"] is None

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["--borrow", "some"], "Or 'any'"),
            (["--guaranteed", "-1"], "Give a whole number"),
            (["--weight", "heavy"], "Give a number above 0"),
            (["--weight", "0"], "Invalid weight: '0'"),
            (["--max-sessions", "x"], "Invalid number of sessions: 'x'"),
        ],
    )
    def test_an_invalid_limit_says_what_is_accepted(
        self, state: StateFolder, hub: FakeHub, arguments: list[str], said: str
    ) -> None:
        carrel("group", "add", "lab")
        done = invoke("group", "set", "lab", *arguments)
        assert done.exit_code == 2
        assert said in " ".join(done.output.split())

    def test_an_account_can_be_a_member_before_its_first_sign_in(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("user", "add", "ada")
        printed = carrel("group", "add", "cs101", "--member", "ada")
        assert printed.splitlines() == ["Created the group cs101.", "ada is a member of cs101."]
        assert hub.members == {"ada": {"cs101"}}
        printed = carrel("group", "set", "cs101", "--remove-member", "ada")
        assert "ada is not a member of cs101 any more." in printed
        assert hub.members == {"ada": set()}

    def test_a_mistyped_teacher_is_noticed(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("user", "add", "grace")
        done = invoke("group", "add", "cs101", "--teacher", "grace", "--teacher", "gracy")
        assert done.exit_code == 0
        assert done.stderr == "Note: no account exists for gracy (yet).\n"

    def test_a_change_without_options_is_a_usage_error(
        self, state: StateFolder, hub: FakeHub
    ) -> None:
        carrel("group", "add", "cs101")
        done = invoke("group", "set", "cs101")
        assert done.exit_code == 2
        assert "Give at least one option to change" in done.output

    def test_a_parent_can_be_removed(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("group", "add", "cs")
        carrel("group", "add", "cs101", "--parent", "cs")
        carrel("group", "set", "cs101", "--parent", "")
        assert json.loads(carrel("group", "show", "cs101", "--json"))["parent"] is None

    def test_show_is_readable_without_the_hub_too(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("group", "add", "cs101", "--max-devices", "4", "--teacher", "grace")
        hub.down = True
        printed = carrel("group", "show", "cs101")
        assert "Teachers              grace" in printed
        assert "Members               unknown: Carrel is not running" in printed
        assert "Max time limit        8h" in printed

    def test_list_shows_the_limits(self, state: StateFolder, hub: FakeHub) -> None:
        assert "There are no groups." in carrel("group", "list")
        carrel("group", "add", "cs101", "--max-devices", "4", "--max-devices-per-user", "2")
        assert carrel("group", "list").splitlines()[1].split() == ["cs101", "4", "2", "8h"]
        (row,) = carrel("group", "list", "--json").splitlines()
        assert json.loads(row)["max_devices_per_user"] == 2

    def test_a_group_without_devices_is_for_cpu(self, state: StateFolder, hub: FakeHub) -> None:
        carrel("group", "add", "cpu-only")
        with closing(open_store(state.database)) as store:
            found = store.group("cpu-only")
        assert (found.max_devices, found.max_devices_per_user) == (0, 0)

    @pytest.mark.parametrize(
        ("arguments", "said"),
        [
            (["add", "cs101"], "The group cs101 already exists. Change it with: carrel group set"),
            (["add", "../x"], "is not a valid name of a group"),
            (["add", "x", "--parent", "nowhere"], "nowhere"),
            (["set", "cs102", "--max-devices", "1"], "cs102"),
            (["show", "cs102"], "cs102"),
            (["set", "cs101", "--member", "nobody"], "JupyterHub does not know nobody."),
        ],
    )
    def test_mistakes_are_reported(
        self, state: StateFolder, hub: FakeHub, arguments: list[str], said: str
    ) -> None:
        carrel("group", "add", "cs101")
        assert said in refusal("group", *arguments)

    @pytest.mark.parametrize("value", ["0h", "1x", "h", "-5m", "1h-"])
    def test_an_invalid_duration_is_a_usage_error(
        self, state: StateFolder, hub: FakeHub, value: str
    ) -> None:
        done = invoke("group", "add", "cs101", f"--max-time={value}")
        assert done.exit_code == 2
        assert f"Invalid duration: '{value}'. Accepted: 30m" in done.output


@pytest.mark.usefixtures("hub")
class TestImport:
    def test_accounts_of_a_table_get_one_time_links(
        self, state: StateFolder, hub: FakeHub, tmp_path: Path
    ) -> None:
        carrel("group", "add", "cs101")
        table = tmp_path / "class.csv"
        table.write_text("name,groups\nada,cs101\nben,cs102\n")
        assert "would be created" in invoke("user", "import", str(table), "--dry-run").output
        refused = refusal("user", "import", str(table))
        assert "1 row of" in refused
        assert "nothing was created" in refused
        assert "There are no accounts." in carrel("user", "list")

        printed = carrel("user", "import", str(table), "--skip-wrong")
        assert hub.members == {"ada": {"cs101"}}
        link = next(line for line in printed.splitlines() if line.startswith("ada,"))
        code = link.partition("#")[2]
        other = carrel("user", "link", "ada").strip().rpartition("#")[2]
        assert "never" in carrel("user", "list")
        with closing(Accounts(state.accounts)) as accounts:
            with pytest.raises(NotFound):
                accounts.use_link(code, "my own password")
            assert accounts.use_link(other, "my own password") == "ada"
        assert signs_in(state, "ada", "my own password")
