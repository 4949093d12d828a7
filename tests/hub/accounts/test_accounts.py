"""Accounts: passwords, names, sign-in limits."""

from __future__ import annotations

import hashlib
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import pytest

from carrel.hub.accounts import Accounts, passwords
from carrel.hub.accounts.demo import DEMO_ACCOUNTS, make_demo_accounts
from carrel.hub.accounts.passwords import Cost, random_password
from carrel.hub.accounts.store import LINK_SECONDS, TooManyAttempts
from carrel.hub.errors import Conflict, InvalidInput, NotFound

CHEAP = Cost(n=2**4, r=1, p=1)
PASSWORD = "a long password"
COMPOSED, DECOMPOSED = "gr\u00fc\u00dfe \u00e9t\u00e9", "gru\u0308\u00dfe e\u0301te\u0301"


class Clock:
    def __init__(self) -> None:
        self.now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "hub" / "accounts.db"


@pytest.fixture
def accounts(path: Path, clock: Clock) -> Iterator[Accounts]:
    found = Accounts(path, clock=clock, cost=CHEAP)
    yield found
    found.close()


def fail(accounts: Accounts, times: int, name: str = "ada", address: str = "10.0.0.1") -> None:
    for _ in range(times):
        assert accounts.sign_in(name, "wrong", address=address) is None


class TestAccounts:
    def test_the_right_password_signs_in_under_the_one_spelling_of_a_name(
        self, accounts: Accounts
    ) -> None:
        made = accounts.add(" Ada ", PASSWORD, admin=True)
        assert made.name == "ada"
        assert accounts.sign_in("ADA", PASSWORD) == made

    @pytest.mark.parametrize("password", ["", "wrong", PASSWORD + " ", "\ud800"])
    def test_a_wrong_password_is_refused(self, accounts: Accounts, password: str) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        assert accounts.sign_in("ada", password) is None

    @pytest.mark.parametrize(
        "name",
        [
            "",
            ".",
            "..",
            "../ada",
            "a/b",
            "-ada",
            "ada\n\nx",
            "ada\u202e",
            "x" * 201,
        ],
    )
    def test_an_invalid_name_is_refused_and_signs_no_user_in(
        self, accounts: Accounts, name: str
    ) -> None:
        with pytest.raises(InvalidInput, match="is not a valid username"):
            accounts.add(name, PASSWORD, admin=False)
        assert accounts.sign_in(name, PASSWORD) is None

    @pytest.mark.parametrize(
        ("made", "typed"),
        [("\u00fcnal", "u\u0308nal"), ("u\u0308nal", "\u00dcNAL"), ("kim", "\u212aim")],
    )
    def test_a_name_is_one_however_its_letters_are_composed(
        self, accounts: Accounts, made: str, typed: str
    ) -> None:
        account = accounts.add(made, PASSWORD, admin=False)
        assert accounts.sign_in(typed, PASSWORD) == account
        with pytest.raises(Conflict):
            accounts.add(typed, PASSWORD, admin=False)

    def test_a_second_account_with_the_same_name_is_refused(self, accounts: Accounts) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        with pytest.raises(Conflict, match="carrel user passwd ada"):
            accounts.add("Ada", PASSWORD, admin=True)

    @pytest.mark.parametrize("password", ["", "seven77", "x" * 2000])
    def test_a_password_has_a_minimum_length(self, accounts: Accounts, password: str) -> None:
        with pytest.raises(InvalidInput, match="at least 8"):
            accounts.add("ada", password, admin=False)
        assert accounts.all() == ()

    def test_a_new_password_replaces_the_old_one(self, accounts: Accounts, clock: Clock) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        clock.now += 10
        accounts.set_password("ada", "another password")
        assert accounts.sign_in("ada", PASSWORD) is None
        found = accounts.sign_in("ada", "another password")
        assert found is not None
        assert (found.created_at, found.password_at) == (clock.now - 10, clock.now)

    def test_an_error_about_an_unknown_account_lists_the_accounts(self, accounts: Accounts) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        with pytest.raises(NotFound, match="Accounts: ada"):
            accounts.remove("ben")
        with pytest.raises(NotFound):
            accounts.set_password("ben", PASSWORD)

    def test_a_removed_account_is_gone(self, accounts: Accounts) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        accounts.remove("ada")
        assert (accounts.find("ada"), accounts.sign_in("ada", PASSWORD)) == (None, None)

    def test_the_file_is_private_and_contains_no_password(
        self, accounts: Accounts, path: Path
    ) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        accounts.add("ben", PASSWORD, admin=False)
        assert PASSWORD.encode() not in path.read_bytes()
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        with sqlite3.connect(path) as database:
            keys = database.execute("select salt, key from accounts").fetchall()
        assert len({salt for salt, _ in keys}) == len({key for _, key in keys}) == 2

    @pytest.mark.parametrize(
        ("composed", "decomposed"),
        [
            (COMPOSED, DECOMPOSED),
            ("a b c d e f", "a\u00a0b\u2003c\u3000d e\u202ff"),
        ],
    )
    def test_a_password_is_one_however_it_is_typed(
        self, accounts: Accounts, composed: str, decomposed: str
    ) -> None:
        for made, typed in ((composed, decomposed), (decomposed, composed)):
            accounts.add("ada", made, admin=False)
            assert accounts.sign_in("ada", typed) is not None
            assert accounts.sign_in("ada", made) is not None
            assert accounts.sign_in("ada", f"{typed} ") is None
            accounts.remove("ada")

    def test_upper_case_and_compatible_letters_of_a_password_differ(
        self, accounts: Accounts
    ) -> None:
        accounts.add("ada", "\ufb01ne passwords", admin=False)
        assert accounts.sign_in("ada", "fine passwords") is None
        assert accounts.sign_in("ada", "\ufb01ne Passwords") is None

    def test_hashes_of_earlier_versions_are_of_the_password_as_it_was_typed(
        self, accounts: Accounts, path: Path
    ) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        salt = b"0123456789abcdef"
        key = hashlib.scrypt(DECOMPOSED.encode(), salt=salt, n=2**4, r=1, p=1, dklen=32)
        with sqlite3.connect(path) as database:
            database.execute("update accounts set salt = ?, key = ?", (salt, key))
        database.close()
        assert accounts.sign_in("ada", DECOMPOSED) is not None
        assert accounts.sign_in("ada", PASSWORD) is None

    def test_a_hash_made_at_another_cost_still_counts(self, path: Path) -> None:
        Accounts(path, cost=CHEAP).add("ada", PASSWORD, admin=False)
        later = Accounts(path, cost=Cost(n=2**5, r=1, p=1))
        assert later.sign_in("ada", PASSWORD) is not None

    def test_random_passwords_are_long_and_differ(self) -> None:
        made = {random_password() for _ in range(50)}
        assert len(made) == 50
        assert all(len(password) == 19 for password in made)

    def test_the_demo_creates_missing_accounts_and_resets_none(self, accounts: Accounts) -> None:
        first = make_demo_accounts(accounts)
        assert set(first) == {one.name for one in DEMO_ACCOUNTS}
        assert make_demo_accounts(accounts) == {}
        admin = accounts.sign_in("admin", first["admin"])
        assert admin is not None
        assert admin.admin
        assert [one.name for one in accounts.all() if one.admin] == ["admin"]


class TestSignInLimits:
    @pytest.fixture(autouse=True)
    def ada(self, accounts: Accounts) -> None:
        accounts.add("ada", PASSWORD, admin=False)

    def test_after_five_failures_even_the_right_password_is_refused_for_a_while(
        self, accounts: Accounts, clock: Clock
    ) -> None:
        fail(accounts, 5)
        with pytest.raises(TooManyAttempts, match="Try again in 30 seconds"):
            accounts.sign_in("ada", PASSWORD, address="10.0.0.2")
        clock.now += 30
        assert accounts.sign_in("ada", PASSWORD) is not None

    def test_every_further_failure_doubles_the_wait_up_to_a_quarter_of_an_hour(
        self, accounts: Accounts, clock: Clock
    ) -> None:
        fail(accounts, 4)
        waits = []
        for _ in range(7):
            fail(accounts, 1)
            with pytest.raises(TooManyAttempts) as refused:
                accounts.sign_in("ada", PASSWORD)
            waits.append(refused.value.seconds)
            clock.now += refused.value.seconds
        assert waits == [30, 60, 120, 240, 480, 900, 900]

    def test_attempts_during_the_wait_do_not_extend_it(
        self, accounts: Accounts, clock: Clock
    ) -> None:
        fail(accounts, 5)
        for _ in range(10):
            with pytest.raises(TooManyAttempts):
                accounts.sign_in("ada", "wrong")
        clock.now += 30
        assert accounts.sign_in("ada", PASSWORD) is not None

    def test_a_right_password_resets_the_failures_of_the_name(self, accounts: Accounts) -> None:
        for _ in range(3):
            fail(accounts, 4)
            assert accounts.sign_in("ada", PASSWORD, address="10.0.0.1") is not None

    def test_failures_expire_after_five_minutes_without_attempts(
        self, accounts: Accounts, clock: Clock
    ) -> None:
        fail(accounts, 4)
        clock.now += 301
        fail(accounts, 4)
        assert accounts.sign_in("ada", PASSWORD) is not None

    def test_a_new_password_ends_the_wait(self, accounts: Accounts) -> None:
        fail(accounts, 5)
        accounts.set_password("ada", "another password")
        assert accounts.sign_in("ada", "another password") is not None

    def test_sign_in_limits_of_one_name_do_not_affect_others(self, accounts: Accounts) -> None:
        accounts.add("ben", PASSWORD, admin=False)
        fail(accounts, 5)
        assert accounts.sign_in("ben", PASSWORD, address="10.0.0.1") is not None

    def test_an_address_that_tries_many_names_waits_and_others_do_not(
        self, accounts: Accounts
    ) -> None:
        for number in range(20):
            fail(accounts, 1, name=f"guess{number}")
        with pytest.raises(TooManyAttempts):
            accounts.sign_in("ada", PASSWORD, address="10.0.0.1")
        assert accounts.sign_in("ada", PASSWORD, address="10.0.0.2") is not None

    def test_successful_sign_ins_from_one_address_are_not_limited(self, accounts: Accounts) -> None:
        for number in range(30):
            accounts.add(f"s{number}", PASSWORD, admin=False)
            assert accounts.sign_in(f"s{number}", PASSWORD, address="10.0.0.1") is not None

    def test_an_unknown_name_is_limited_like_a_known_one(self, accounts: Accounts) -> None:
        fail(accounts, 5, name="nobody")
        with pytest.raises(TooManyAttempts):
            accounts.sign_in("nobody", PASSWORD)

    def test_unknown_names_are_not_stored(
        self, accounts: Accounts, clock: Clock, path: Path
    ) -> None:
        fail(accounts, 1, name="made-up")
        clock.now += 2 * 86400
        fail(accounts, 1, name="other")
        with sqlite3.connect(path) as database:
            keys = {key for (key,) in database.execute("select key from sign_in_attempts")}
        assert keys == {"name:other", "address:10.0.0.1"}

    def test_an_unknown_name_takes_as_long_as_a_known_one(
        self, accounts: Accounts, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        costs = []
        real = passwords.matches

        def counted(password: str, known: passwords.Hash) -> bool:
            costs.append(known.cost)
            return real(password, known)

        monkeypatch.setattr(passwords, "matches", counted)
        fail(accounts, 1, name="ada")
        fail(accounts, 1, name="nobody")
        fail(accounts, 1, name="../..")
        assert costs == [CHEAP] * 3


GUESSER = """
import sys
from pathlib import Path
from carrel.hub.accounts.login_limits import Limit, LoginLimits
from carrel.hub.accounts.passwords import Cost
from carrel.hub.accounts.store import Accounts, TooManyAttempts

limits = LoginLimits(per_name=Limit(failures=5, first_wait=1e6, longest_wait=1e6))
accounts = Accounts(Path(sys.argv[1]), cost=Cost(n=16, r=1, p=1), sign_in_limits=limits)
looked_at = 0
for number in range(8):
    try:
        accounts.sign_in("ada", f"wrong {number}")
    except TooManyAttempts:
        continue
    looked_at += 1
print(looked_at)
"""


def test_several_processes_share_one_sign_in_limit(path: Path) -> None:
    Accounts(path, cost=CHEAP).add("ada", PASSWORD, admin=False)
    guessers = [
        subprocess.Popen([sys.executable, "-c", GUESSER, str(path)], stdout=subprocess.PIPE)
        for _ in range(3)
    ]
    looked_at = [int(guesser.communicate(timeout=60)[0]) for guesser in guessers]
    assert sum(looked_at) == 5


def together(actions: list[Callable[[], object]]) -> list[object]:
    with ThreadPoolExecutor(len(actions)) as pool:
        return [done.result() for done in [pool.submit(action) for action in actions]]


class TestRightPasswords:
    """A right password is never refused for other right ones."""

    def test_those_that_come_together_are_all_let_in(self, path: Path) -> None:
        accounts = Accounts(path, cost=CHEAP)
        for number in range(30):
            accounts.add(f"s{number}", PASSWORD, admin=False)
        names = [f"s{number}" for number in range(30)] + ["s0"] * 20
        found = together(
            [partial(accounts.sign_in, n, PASSWORD, address="10.0.0.1") for n in names]
        )
        assert all(found)

    def test_one_that_comes_while_the_last_free_attempt_is_checked_waits_for_its_outcome(
        self, path: Path, clock: Clock
    ) -> None:
        accounts = Accounts(path, clock=clock, cost=CHEAP)
        accounts.add("ada", PASSWORD, admin=False)
        fail(accounts, 4)
        found = together([partial(accounts.sign_in, "ada", PASSWORD)] * 8)
        assert all(found)

    def test_an_attempt_whose_clock_was_read_early_is_not_refused(
        self, accounts: Accounts, clock: Clock
    ) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        clock.now += 1
        fail(accounts, 1)
        clock.now -= 0.5  # also a clock that was set back
        assert accounts.sign_in("ada", PASSWORD, address="10.0.0.1") is not None


def test_a_new_password_asks_for_the_end_of_earlier_sign_ins_until_that_is_done(
    accounts: Accounts, clock: Clock
) -> None:
    accounts.add("ada", PASSWORD, admin=False)
    assert accounts.password_resets() == {}
    accounts.set_password("ada", "another password")
    first = accounts.password_resets()
    assert first == {"ada": clock.now}
    clock.now += 1
    accounts.set_password("ada", "a third password")
    accounts.forget_resets(first)
    assert accounts.password_resets() == {"ada": clock.now}
    accounts.forget_resets(accounts.password_resets())
    assert accounts.password_resets() == {}


class TestLinks:
    def test_a_link_works_for_seven_days_and_only_its_hash_is_stored(
        self, accounts: Accounts, clock: Clock, path: Path
    ) -> None:
        accounts.add_without_password({"ada": False, "ben": False})
        codes = accounts.make_links(["ada", "ben"])
        for code in codes.values():
            assert code.encode() not in path.read_bytes()
        clock.now += LINK_SECONDS - 1
        assert accounts.use_link(codes["ada"], PASSWORD) == "ada"
        clock.now += 1
        with pytest.raises(NotFound, match="has expired"):
            accounts.use_link(codes["ben"], PASSWORD)
        assert accounts.sign_in("ada", PASSWORD) is not None
        assert accounts.sign_in("ben", PASSWORD) is None

    def test_two_uses_at_once_set_one_password(self, accounts: Accounts) -> None:
        accounts.add_without_password({"ada": False})
        code = accounts.make_links(["ada"])["ada"]

        def use(number: int) -> bool:
            try:
                accounts.use_link(code, f"{PASSWORD} {number}")
            except NotFound:
                return False
            return True

        with ThreadPoolExecutor(4) as threads:
            used = list(threads.map(use, range(4)))
        assert used.count(True) == 1
        assert accounts.sign_in("ada", f"{PASSWORD} {used.index(True)}") is not None

    def test_accounts_without_a_password_are_added_together_or_not_at_all(
        self, accounts: Accounts
    ) -> None:
        accounts.add("ada", PASSWORD, admin=False)
        with pytest.raises(Conflict):
            accounts.add_without_password({"ben": False, "ada": False})
        assert accounts.find("ben") is None
        with pytest.raises(NotFound):
            accounts.make_links(["ada", "ben"])

    def test_a_removed_account_has_no_link(self, accounts: Accounts) -> None:
        accounts.add_without_password({"ada": False})
        code = accounts.make_links(["ada"])["ada"]
        accounts.remove("ada")
        accounts.add("ada", PASSWORD, admin=False)
        with pytest.raises(NotFound):
            accounts.use_link(code, "another password")
