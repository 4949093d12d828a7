"""``carrel simulate``."""

from __future__ import annotations

import json
import re
from contextlib import closing
from dataclasses import replace
from datetime import UTC, datetime, time
from html.parser import HTMLParser
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from carrel import __version__
from carrel.hub.cli import cli
from carrel.hub.cli.admin.simulate_ledger import read_ledger
from carrel.hub.config.settings import Settings
from carrel.hub.config.state_folder import StateFolder
from carrel.hub.errors import CarrelError
from carrel.hub.interfaces.store import Store
from carrel.hub.records.calendar import Reservation, Term
from carrel.hub.records.gangs import JobGang, JobRole
from carrel.hub.records.requests import JobSpec, NewRequest
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.scheduling.model.plan import Start
from carrel.hub.scheduling.model.snapshot import Budget, Period
from carrel.hub.scheduling.model.states import State
from carrel.hub.simulation.workload.jobs import Gang
from carrel.hub.simulation.workload.nodes import ONE_POOL, parse_nodes
from carrel.hub.simulation.workload.reader import Selection
from carrel.hub.store import open_store
from carrel.hub.transitions import lifecycle
from carrel.hub.usage.what_if.site_history import site_devices

from ....contracts import store_kit

TRACE = """\
id,user,tenant,submitted_at,seconds,devices
a,ada,lab,0,100,2
b,bob,lab,1,50,2
c,eve,cs101,2,10,1
"""


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "own.csv"
    path.write_text(TRACE, encoding="utf-8")
    return path


def carrel(*words: object) -> Result:
    return CliRunner().invoke(cli, ["simulate", *(str(word) for word in words)])


def refused(*words: object) -> CarrelError:
    result = carrel(*words)
    assert isinstance(result.exception, CarrelError), result.output
    return result.exception


def test_json_has_the_results_and_all_options_to_reproduce_them(trace: Path) -> None:
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo,sjf", "--seed", 3)
    found = json.loads(carrel(*words, "--json", "-").stdout)
    assert set(found["policies"]) == {"fifo", "sjf"}
    assert found["policies"]["fifo"]["jct"] == {
        "mean": pytest.approx((100 + 149 + 158) / 3),
        "median": 149.0,
        "p95": 158.0,
        "p99": 158.0,
    }
    assert set(found["policies"]["fifo"]) == {
        *("jct", "wait", "utilisation", "slowdown", "preemptions", "wasted_device_seconds"),
        *("fairness", "fragmentation", "held_back"),
    }
    assert found["trace"] == {
        "name": "own.csv",
        "where": {},
        "from": None,
        "to": None,
        "jobs": 3,
        "left_out": {},
        "skipped": [],
    }
    assert (found["nodes"], found["seed"], found["version"]) == ("1x2", 3, __version__)


def test_the_report_and_the_page_say_which_part_of_the_trace_it_is(trace: Path) -> None:
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo")
    part = ("--where", "tenant=lab", "--from", "1", "--to", "2")
    found = json.loads(carrel(*words, *part, "--json", "-").stdout)["trace"]
    assert (found["where"], found["from"], found["to"]) == ({"tenant": "lab"}, "1", "2")
    assert found["jobs"] == 1
    sentence = "Jobs of the trace: tenant is lab, submitted from 1, submitted up to 2."
    assert sentence in carrel(*words, *part, "--html", "-").stdout
    assert "Jobs of the trace:" not in carrel(*words, "--html", "-").stdout


def test_without_an_output_a_table_is_printed(trace: Path) -> None:
    result = carrel("--trace", trace, "--nodes", "1x2", "--policy", "fifo,greedy")
    assert result.exit_code == 0
    table = result.stdout.split("\n\n")[0]
    assert [line.split()[0] for line in table.splitlines()] == ["POLICY", "fifo", "greedy"]


SHARED = """\
id,user,tenant,submitted_at,seconds,devices
a,ada,x,0,100,2
b,bob,y,1,100,1
"""
FAIR = ["worst finish time", "worst user's slowdown", "worst tenant's slowdown"]
LACKED = ["below a guarantee", "below it alone"]


def fairness_printed(*words: object) -> tuple[list[list[str]], list[str]]:
    """Return the cells of the second table, and the names explained below it."""
    _, *rest = carrel(*words).stdout.strip().split("\n\n")
    if not rest:
        return [], []
    table, meanings = rest
    names = [line.partition(": ")[0].lower() for line in meanings.splitlines()]
    return [re.split(r" {2,}", line.strip()) for line in table.splitlines()], names


def test_the_worst_users_are_printed_with_an_explanation(tmp_path: Path) -> None:
    trace, quota = tmp_path / "own.csv", tmp_path / "quota.toml"
    trace.write_text(SHARED, encoding="utf-8")
    quota.write_text("[groups.y]\nguaranteed = 1\n", encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo")
    rows, names = fairness_printed(*words, "--quota", quota)
    assert rows == [
        ["POLICY", *(name.upper() for name in FAIR + LACKED)],
        ["fifo", "1.99", "2.0", "2.0", "0.03 device-hours", "0.0 device-hours"],
    ]
    assert names == FAIR + LACKED
    rows, names = fairness_printed(*words)
    assert (rows[1], names) == (["fifo", "2.0", "2.0"], FAIR[1:])


def test_without_several_users_there_is_no_fairness_table(tmp_path: Path) -> None:
    trace = tmp_path / "own.csv"
    trace.write_text("submitted_at,seconds,devices\n0,100,2\n", encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo")
    assert fairness_printed(*words) == ([], [])
    assert "Fairness" not in carrel(*words, "--html", "-").stdout


def test_bad_lines_are_errors_or_counted(trace: Path) -> None:
    trace.write_text(TRACE + "d,eve,cs101,2,10,none\n", encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo", "--json", "-")
    assert "own.csv, line 5: devices is 'none'" in str(refused(*words))
    result = carrel(*words, "--skip-bad")
    assert json.loads(result.stdout)["trace"]["skipped"] == [
        {"line": 5, "why": "devices is 'none'."}
    ]
    assert "Skipped line 5" in result.stderr


def test_tenants_on_nodes_of_their_own(trace: Path) -> None:
    words = ("--trace", trace, "--policy", "fifo", "--json", "-")
    found = json.loads(carrel(*words, "--nodes", "lab=1x2,cs101=1x1").stdout)
    assert found["policies"]["fifo"]["jct"]["mean"] == pytest.approx((100 + 149 + 10) / 3)
    assert "'cs101' of c has no nodes" in str(refused(*words, "--nodes", "lab=1x2"))


def test_only_what_was_selected_is_replayed(trace: Path) -> None:
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo", "--json", "-")
    found = json.loads(carrel(*words, "--where", "tenant=lab", "--from", 1, "--to", 5).stdout)
    assert found["trace"]["jobs"] == 1
    assert "No job of own.csv is left" in str(refused(*words, "--where", "tenant=none"))
    assert "COLUMN=TEXT" in str(refused(*words, "--where", "tenant"))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--nodes", "1x2", "--policy", "lottery"), "no policy 'lottery'"),
        (("--nodes", "1by2"), "Nodes cannot be '1by2'"),
        (("--nodes", "1x2", "--estimates", "magic"), "Estimates cannot be 'magic'"),
        (("--nodes", "1x2", "--from", "banana"), "'banana' is not a time."),
        (("--nodes", "1x1"), "asks for 2 devices"),
        (("--nodes", "1x2", "--json", "/nowhere/at/all.json"), "no folder /nowhere/at"),
    ],
)
def test_unknown_values_are_refused(trace: Path, words: tuple[str, ...], said: str) -> None:
    assert said in str(refused("--trace", trace, "--policy", "fifo", *words))


GANGS = """\
id,submitted_at,seconds,devices,members,minimum,arrangement,model
alone,0,100,2,,,,A100
elastic,10,50,4,4,2,,A100
apart,200,50,2,2,,spread,A100
whole,200,50,2,,,,A100
other,200,50,4,2,,,V100
"""


def test_nodes_that_are_added_to_a_site_have_its_model_unless_they_say_theirs() -> None:
    found = parse_nodes("2x2:H200").pool(ONE_POOL)
    more = site_devices(found, "+1x1,1x1:A100@sw1")[len(found) :]
    assert [(each.model, each.switch) for each in more] == [("H200", ""), ("A100", "sw1")]


def test_gangs_are_replayed_on_nodes_with_models_and_switches(tmp_path: Path) -> None:
    """The elastic gang starts at once under carrel, and waits 90 s for ``alone`` under fifo."""
    trace = tmp_path / "gangs.csv"
    trace.write_text(GANGS, encoding="utf-8")
    words = ("--trace", trace, "--policy", "greedy,carrel", "--json", "-")
    nodes = "1x2:A100@sw1,1x2:A100@sw2,1x4:V100"
    found = json.loads(carrel(*words, "--nodes", nodes).stdout)
    assert found["nodes"] == nodes
    waits = {name: each["wait"]["mean"] * 5 for name, each in found["policies"].items()}
    assert waits == pytest.approx({"greedy": 90 + 50, "carrel": 50})


@pytest.mark.parametrize(
    "words",
    [
        (),
        ("--trace", "x.csv"),
        ("--trace", "x.csv", "--nodes", "1x2", "--json", "-", "--html", "-"),
        ("--trace", "x.csv", "--nodes", "1x2", "--format", "other"),
        ("--trace", "x.csv", "--nodes", "1x2", "--restart-cost", "-1"),
    ],
)
def test_typing_errors_are_explained(words: tuple[str, ...]) -> None:
    assert carrel(*words).exit_code == 2


class Page(HTMLParser):
    """The addresses, text alternatives and tables of a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.fetched: list[str] = []
        self.pictures: list[str] = []
        self.texts: dict[str, list[str]] = {}
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.tags.append(tag)
        self.fetched += [given[name] or "" for name in ("src", "href") if name in given]
        if tag == "svg" and given.get("role") == "img":
            self.pictures.append(given.get("aria-label") or "")

    def handle_data(self, data: str) -> None:
        self.texts.setdefault(self.tags[-1], []).append(data)


def test_the_page_shows_the_worst_users_and_explains_it(tmp_path: Path) -> None:
    trace, quota = tmp_path / "own.csv", tmp_path / "quota.toml"
    trace.write_text(SHARED, encoding="utf-8")
    quota.write_text("[groups.y]\nguaranteed = 1\n", encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo", "--html", "-")
    page = Page(carrel(*words, "--quota", quota).stdout)
    assert "Fairness" in page.texts["h2"]
    assert [name for name in page.texts["th"] if name in FAIR + LACKED] == FAIR + LACKED
    assert page.texts["dt"] == [*FAIR, *LACKED, "fifo"]
    assert page.texts["td"][-5:] == ["1.99", "2.0", "2.0", "0.03 device-hours", "0.0 device-hours"]
    assert Page(carrel(*words).stdout).texts["dt"] == [*FAIR[1:], "fifo"]


def test_the_page_holds_everything_and_is_read_without_colour(trace: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    carrel("--trace", trace, "--nodes", "1x2", "--policy", "fifo,greedy,sjf", "--html", out)
    text = out.read_text(encoding="utf-8")
    page = Page(text)
    assert "script" not in page.tags
    assert page.fetched == []
    assert len(page.pictures) == 4
    assert all(page.pictures)
    lines = re.findall(r'<g class="line s\d"><path d="[^"]*" stroke-dasharray="([^"]*)"', text)
    assert len(set(lines)) == 3, "each policy has dashes of its own"
    assert "prefers-color-scheme:dark" in text


def test_the_same_command_writes_the_same_page(trace: Path) -> None:
    words = ("--trace", trace, "--nodes", "1x2", "--policy", "fifo,qssf,carrel", "--html", "-")
    assert carrel(*words).stdout == carrel(*words).stdout


def test_a_page_about_a_thousand_years_is_no_larger_than_others(tmp_path: Path) -> None:
    path = tmp_path / "own.csv"
    path.write_text("submitted_at,seconds,devices\n1000-01-01,1,1\n2026-01-01,1,1\n", "utf-8")
    words = ("--trace", path, "--nodes", "1x2", "--policy", "fifo", "--html", "-")
    assert len(carrel(*words).stdout) < 30_000


def test_names_cannot_write_into_the_page(tmp_path: Path) -> None:
    path = tmp_path / "<b>x.csv"
    path.write_text(TRACE, encoding="utf-8")
    text = carrel("--trace", path, "--nodes", "1x2", "--policy", "fifo", "--html", "-").stdout
    assert "<b>" not in text


def stored_site(root: Path) -> StateFolder:
    """Two devices and three jobs: two ran for 100 s on one device each, one never ran."""
    state = StateFolder.at(root / "site")
    state.create()
    Settings().save(state)
    with closing(open_store(state.database)) as store:
        store_kit.furnish(store)
        for name, owner, at in (("a", "ada", 100.0), ("b", "bob", 120.0)):
            new = store_kit.job(name, owner=owner)
            lease = store_kit.running(store, new, "D0" if name == "a" else "D1", at=at)
            store.apply(new.id, lifecycle.stop, State.SUCCEEDED, store_kit.DONE, now=at + 100)
            store.apply_to_lease(lease.id, lifecycle.finish, now=at + 100, charge_until=at + 100)
        store.submit(store_kit.job("c"), 130.0)
        store.apply("j-c", lifecycle.stop, State.CANCELLED, store_kit.CANCELLED, now=140.0)
    return state


def ran_for_50_s(store: Store, new: NewRequest, device: str, at: float) -> None:
    lease = store_kit.running(store, new, device, at=at)
    store.apply(new.id, lifecycle.stop, State.SUCCEEDED, store_kit.DONE, now=at + 50)
    store.apply_to_lease(lease.id, lifecycle.finish, now=at + 50, charge_until=at + 50)


def test_the_history_of_a_site_is_replayed_on_its_nodes_or_others(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    words = ("--from-ledger", "--state", state.root, "--policy", "fifo,carrel", "--json", "-")
    now = json.loads(carrel(*words).stdout)
    assert now["trace"] == {
        "name": "the ledger",
        "where": {},
        "from": None,
        "to": None,
        "jobs": 2,
        "left_out": {"ended before they held a device, or were charged nothing": 1},
        "skipped": [],
    }
    assert now["nodes"] == "the site"
    for found in now["policies"].values():
        assert found["jct"]["mean"] == 100.0
        assert found["utilisation"] == pytest.approx(200 / 240)
    more = json.loads(carrel(*words, "--nodes", "+1x2").stdout)
    assert more["policies"]["fifo"]["utilisation"] == pytest.approx(200 / 480)
    less = json.loads(carrel(*words, "--nodes", "1x1").stdout)
    assert less["policies"]["carrel"]["jct"]["mean"] == (100 + 180) / 2
    assert (more["nodes"], less["nodes"]) == ("the site +1x2", "1x1")
    assert "tenants cannot have their own nodes" in str(refused(*words, "--nodes", "+lab=1x2"))


def test_a_learned_order_is_replayed_beside_the_order_of_the_site(tmp_path: Path) -> None:
    """Of two queued jobs the wide one passes by a discount for wide ones."""
    state = stored_site(tmp_path)
    with closing(open_store(state.database)) as store:
        for number, (devices, ran) in enumerate([(2, 100.0), (1, 50.0), (2, 100.0)]):
            at, names = 1000.0 + 10 * number, ("D0", "D1")[:devices]
            new = store_kit.job(f"{number}", devices=devices)
            lease = store_kit.running(store, new, *names, at=at)
            store.apply(new.id, lifecycle.stop, State.SUCCEEDED, store_kit.DONE, now=at + ran)
            store.apply_to_lease(lease.id, lifecycle.finish, now=at + ran, charge_until=at + ran)
    state.learned_orders.mkdir()
    order = LearnedOrder(name="wide", weights=(0.0, 0.0, 10.0, *(WEIGHTS - 3) * (0.0,)))
    file = state.learned_orders / "wide.json"
    file.write_text(order.as_json())
    words = ("--from-ledger", "--state", state.root, "--policy", "fifo,carrel")
    words += ("--learned-order", "wide")

    def waits() -> tuple[dict[str, float], Result]:
        result = carrel(*words, "--json", "-")
        found = json.loads(result.stdout)["policies"]
        return {name: each["wait"]["mean"] for name, each in found.items()}, result

    without, _ = waits()
    assert set(without) == {"fifo", "carrel", "carrel:wide"}
    assert without["carrel:wide"] != without["carrel"]
    Settings(learned_order="wide").save(state)
    active, result = waits()
    assert active["carrel"] == active["carrel:wide"] == without["carrel:wide"]
    assert "carrel uses the learned order wide, as the site." in result.stderr
    assert "Learned order: wide." in carrel(*words, "--html", "-").stdout
    file.write_text("{")
    assert "wide.json" in str(refused(*words))
    ignored = carrel(*words[:-2], "--json", "-")
    assert "carrel is replayed without it, as the site." in ignored.stderr
    assert json.loads(ignored.stdout)["policies"]["carrel"]["wait"]["mean"] == without["carrel"]


def test_the_quotas_of_the_next_term_are_simulated(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    quota = tmp_path / "next-term.toml"
    quota.write_text("[groups.lab]\nmax_devices = 1\n", encoding="utf-8")
    words = ("--from-ledger", "--state", state.root, "--quota", quota, "--policy", "carrel")
    result = carrel(*words, "--json", "-")
    found = json.loads(result.stdout)
    assert found["policies"]["carrel"]["jct"]["mean"] == (100 + 180) / 2
    assert "No replayed job belongs to" not in result.stderr


def test_the_quotas_of_the_next_term_are_simulated_with_another_node(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    quota = tmp_path / "next-term.toml"
    words = ("--from-ledger", "--state", state.root, "--nodes", "+1x4", "--quota", quota)

    def tried(limits: str) -> dict[str, dict[str, object]]:
        quota.write_text(f"[groups.lab]\n{limits}\n", encoding="utf-8")
        found = json.loads(carrel(*words, "--policy", "fifo,carrel", "--json", "-").stdout)
        assert found["nodes"] == "the site +1x4"
        return dict(found["policies"])

    narrow = tried("max_devices = 1")
    # One after the other on one of six devices; fifo ignores quotas.
    assert narrow["carrel"]["jct"] == {"mean": 140, "median": 100, "p95": 180, "p99": 180}
    assert narrow["carrel"]["utilisation"] == pytest.approx(200 / (6 * 200))
    assert narrow["fifo"]["utilisation"] == pytest.approx(200 / (6 * 120))
    # A guaranteed quota larger than today's site is one of all six devices.
    wide = tried("max_devices = 6\nguaranteed = 6")
    for found in wide.values():
        assert found["utilisation"] == pytest.approx(200 / (6 * 120))
        fairness = found["fairness"]
        assert isinstance(fairness, dict)
        assert fairness["finish_time"]["by_tenant"] == {"lab": 1.0}
        assert fairness["jct_alone"] == found["jct"]
        assert fairness["below_guarantee_device_seconds"] == 0


def test_requests_above_the_next_terms_limits_are_left_out_and_counted(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    quota = tmp_path / "next-term.toml"
    words = ("--from-ledger", "--state", state.root, "--quota", quota, "--policy", "fifo")
    quota.write_text('[groups.lab]\nmax_seconds = "9m"\n', encoding="utf-8")
    assert "2 asked for more time than lab allows" in str(refused(*words))
    with closing(open_store(state.database)) as store:
        short = replace(store_kit.job("d"), seconds=540)
        ran_for_50_s(store, short, "D0", 400.0)
    result = carrel(*words, "--json", "-")
    assert "2 left out: asked for more time than lab allows." in result.stderr
    found = json.loads(result.stdout)
    assert found["trace"]["jobs"] == 1
    assert found["trace"]["left_out"]["asked for more time than lab allows"] == 2


def left_out(result: Result) -> dict[str, int]:
    """Return the number of left-out requests by reason, without those that never held a device."""
    said: dict[str, int] = json.loads(result.stdout)["trace"]["left_out"]
    said.pop("ended before they held a device, or were charged nothing")
    for reason, count in said.items():
        assert f"{count} left out: {reason}." in result.stderr
    return said


def wide_site(root: Path, *more: NewRequest) -> tuple[StateFolder, tuple[object, ...]]:
    """``stored_site`` with requests that held both devices for 50 s, and its replay command."""
    state = stored_site(root)
    with closing(open_store(state.database)) as store:
        for number, new in enumerate(more):
            at = 1000.0 + 100 * number
            lease = store_kit.running(store, new, "D0", "D1", at=at)
            store.apply(new.id, lifecycle.stop, State.SUCCEEDED, store_kit.DONE, now=at + 50)
            store.apply_to_lease(lease.id, lifecycle.finish, now=at + 50, charge_until=at + 50)
    return state, ("--from-ledger", "--state", state.root, "--policy", "fifo,carrel")


def test_a_request_larger_than_a_quota_that_is_tried_is_left_out(tmp_path: Path) -> None:
    _, words = wide_site(tmp_path, store_kit.job("wide", devices=2))
    quota = tmp_path / "next-term.toml"
    quota.write_text("[groups.lab]\nmax_devices = 1\n", encoding="utf-8")
    reason = "asked for more devices than lab may hold"
    result = carrel(*words, "--quota", quota, "--json", "-")
    assert left_out(result) == {reason: 1}
    found = json.loads(result.stdout)
    assert found["trace"]["jobs"] == 2
    # Both policies replay the same jobs, fifo too, although it ignores quotas.
    assert found["policies"]["fifo"]["jct"]["mean"] == 100
    assert found["policies"]["carrel"]["jct"]["mean"] == 140
    assert "left out: asked for more devices" not in carrel(*words, "--html", "-").stdout
    assert f"left out: {reason}." in carrel(*words, "--quota", quota, "--html", "-").stdout


def test_a_request_larger_than_the_site_allows_by_now_is_left_out(tmp_path: Path) -> None:
    state, words = wide_site(tmp_path, store_kit.job("wide", devices=2))
    with closing(open_store(state.database)) as store:
        store.put_group(replace(store_kit.LAB, max_devices_per_user=1))
    result = carrel(*words, "--json", "-")
    assert left_out(result) == {"asked for more devices than one member of lab may hold": 1}


def test_non_preemptible_jobs_are_left_out_under_a_raised_guarantee(tmp_path: Path) -> None:
    lasting = replace(store_kit.job("lasting", devices=2), preemptible=False)
    session = replace(store_kit.session("s"), devices=2)
    lent = replace(store_kit.job("lent", devices=2), preemptible=True)
    _, words = wide_site(tmp_path, lasting, session, lent)
    quota = tmp_path / "next-term.toml"
    quota.write_text("[groups.course]\nguaranteed = 1\n", encoding="utf-8")
    result = carrel(*words, "--quota", quota, "--json", "-")
    reason = "asked for more devices than lab can have beside the guaranteed quotas of others"
    assert left_out(result) == {reason: 2}
    assert json.loads(result.stdout)["trace"]["jobs"] == 3


def test_a_request_larger_than_the_nodes_that_are_tried_is_left_out(tmp_path: Path) -> None:
    _, words = wide_site(tmp_path, store_kit.job("wide", devices=2))
    result = carrel(*words, "--nodes", "4x1", "--json", "-")
    assert left_out(result) == {"asked for more devices than one node has": 1}
    result = carrel(*words, "--nodes", "1x1", "--json", "-")
    assert left_out(result) == {"asked for more devices than these nodes have": 1}


def test_the_quotas_of_a_trace_leave_out_what_they_would_refuse(
    trace: Path, tmp_path: Path
) -> None:
    quota = tmp_path / "quota.toml"
    quota.write_text("[groups.lab]\nmax_devices = 1\n", encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--quota", quota, "--policy", "fifo,carrel")
    result = carrel(*words, "--json", "-")
    assert json.loads(result.stdout)["trace"]["left_out"] == {
        "asked for more devices than lab may hold": 2
    }
    assert "2 left out: asked for more devices than lab may hold." in result.stderr


THURSDAY = datetime(1970, 1, 1, tzinfo=UTC).date()
"""The day of all jobs of ``stored_site``."""


def test_the_budgets_of_the_next_term_are_simulated(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    quota = tmp_path / "next-term.toml"
    words = ("--from-ledger", "--state", state.root, "--quota", quota, "--policy", "carrel")
    with closing(open_store(state.database)) as store:
        for name, device, at in (("d", "D0", 400.0), ("e", "D1", 420.0)):
            ran_for_50_s(store, replace(store_kit.job(name), seconds=540), device, at)
    # With time limits as long as the budget, the second of these starts when the first has ended.
    quota.write_text('[groups.lab]\nbudget = "0.15h/week"\n', encoding="utf-8")
    result = carrel(*words, "--json", "-")
    assert "2 left out: asked for more than the whole budget of lab." in result.stderr
    assert json.loads(result.stdout)["policies"]["carrel"]["jct"]["mean"] == (50 + 80) / 2
    quota.write_text('[groups.lab]\nbudget = "0.1h/week"\n', encoding="utf-8")
    assert "4 asked for more than the whole budget of lab" in str(refused(*words))


def test_the_budgets_of_the_site_hold_where_no_file_says_otherwise(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    with closing(open_store(state.database)) as store:
        budget = Budget(device_seconds=600, period=Period.TERM)
        store.put_group(replace(store_kit.LAB, budget=budget))
    words = ("--from-ledger", "--state", state.root, "--policy", "fifo,carrel")
    assert "no term is known in which they could run" in str(refused(*words))
    with closing(open_store(state.database)) as store:
        store.put_term(Term(name="winter", first=THURSDAY, last=THURSDAY))
        for number in range(10):
            ran_for_50_s(store, store_kit.job(f"more{number}"), "D0", 1000.0 + 100 * number)
    result = carrel(*words, "--html", "-")
    said = "Under carrel, 2 jobs never ended: held by a budget"
    assert said in result.stderr
    assert said in result.stdout
    found = json.loads(carrel(*words, "--json", "-").stdout)["policies"]
    assert {name: each["held_back"] for name, each in found.items()} == {"fifo": 0, "carrel": 2}
    wide = tmp_path / "next-term.toml"
    wide.write_text('[groups.lab]\nbudget = "none"\n', encoding="utf-8")
    assert "never ended" not in carrel(*words, "--quota", wide).stderr


def test_reservations_and_deadlines_of_the_site_are_kept(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    with closing(open_store(state.database)) as store:
        ran_for_50_s(store, replace(store_kit.job("d"), deadline=900.0), "D0", 400.0)
        store.put_group(replace(store_kit.LAB, name="course"))
        store.put_reservation(
            Reservation(
                id="r-1",
                group="course",
                devices=2,
                weekdays=(),
                begins=time(0, 10),
                ends=time(1, 0),
                zone="UTC",
                first=THURSDAY,
                last=THURSDAY,
            )
        )
    words = ("--from-ledger", "--state", state.root, "--policy", "fifo,carrel", "--json", "-")
    found = json.loads(carrel(*words).stdout)["policies"]
    assert found["fifo"]["wait"]["mean"] == 0
    # Their limits of ten minutes would run into it, up to one o'clock. Of ada's two the shorter
    # one is next then.
    starts = {"a": 3650, "b": 3600, "d": 3600}
    jct = starts["a"] + 100 - 100, starts["b"] + 100 - 120, starts["d"] + 50 - 400
    assert found["carrel"]["jct"]["mean"] == sum(jct) / 3
    assert [job.deadline for job in read_ledger(state, Selection()).trace.jobs][-1] == 900.0


def test_a_job_of_several_members_is_replayed_as_one(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    roles = (
        JobRole(name="server", command=("serve",)),
        JobRole(name="worker", command=("work",), devices=1, wanted=2, minimum=1),
    )
    spec = JobSpec(notebook_name="", command=("serve",), gang=JobGang(roles=roles))
    new = replace(store_kit.job("d"), devices=2, job=spec)
    with closing(open_store(state.database)) as store:
        store.submit(new, 400.0)
        start = Start(request_id=new.id, devices=("D0", "D1"), members=(1, 2))
        (lease,) = store.grant([start], now=400.0, lease_seconds=30.0)
        assert [(each.role, each.devices) for each in lease.members] == [
            ("server", ()),
            ("worker", ("D0",)),
            ("worker", ("D1",)),
        ]
        store.apply(new.id, lifecycle.stop, State.CANCELLED, store_kit.CANCELLED, now=450.0)
    found = read_ledger(state, Selection()).trace.jobs[-1]
    assert (found.devices, found.seconds, found.gang) == (2, 50.0, Gang(members=2, minimum=1))
    words = ("--from-ledger", "--state", state.root, "--policy", "carrel", "--json", "-")
    assert json.loads(carrel(*words).stdout)["policies"]["carrel"]


def test_a_trace_has_no_terms(trace: Path, tmp_path: Path) -> None:
    quota = tmp_path / "quota.toml"
    quota.write_text('[groups.lab]\nbudget = "3h/term"\n', encoding="utf-8")
    words = ("--trace", trace, "--nodes", "1x2", "--quota", quota, "--policy", "carrel")
    assert "The budget of lab is by term, and a trace has no terms" in str(refused(*words))
    quota.write_text('[groups.lab]\nbudget = "3h/week"\n', encoding="utf-8")
    assert carrel(*words).exit_code == 0


def test_a_quota_under_which_nothing_could_run_is_named(tmp_path: Path) -> None:
    state = stored_site(tmp_path)
    quota = tmp_path / "next-term.toml"
    words = ("--from-ledger", "--state", state.root, "--quota", quota, "--policy", "carrel")
    quota.write_text("[groups.lab]\nmax_devices = 0\n", encoding="utf-8")
    all_refused = "Admission would reject all jobs of the ledger: 2 asked for more devices than "
    assert f"{all_refused}lab may hold" in str(refused(*words))
    quota.write_text('[groups.lab]\nmodels = ["Other"]\n', encoding="utf-8")
    assert f"{all_refused}one node has that lab may use" in str(refused(*words))
    quota.write_text("[groups.labb]\nmax_devices = 1\n", encoding="utf-8")
    assert "No replayed job belongs to labb" in carrel(*words).stderr


def test_a_history_in_which_nothing_ended_says_so(tmp_path: Path) -> None:
    state = StateFolder.at(tmp_path / "new")
    state.create()
    Settings().save(state)
    with closing(open_store(state.database)) as store:
        store_kit.furnish(store)
        words = ("--from-ledger", "--state", state.root)
        assert "The ledger has nothing to replay yet" in str(refused(*words))
        store.submit(store_kit.job("c"), 130.0)
        assert "1 have not ended" in str(refused(*words))


def test_without_a_site_there_is_no_history(tmp_path: Path) -> None:
    assert "no Carrel in" in str(refused("--from-ledger", "--state", tmp_path / "nowhere"))
    assert carrel("--from-ledger", "--trace", "x.csv").exit_code == 2
