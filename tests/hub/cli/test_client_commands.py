"""The commands of all users, against a real HTTP server."""

from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from carrel.hub.cli import cli
from carrel.hub.errors import InvalidInput
from carrel.hub.messages import units
from carrel.hub.schemas import MAX_NOTEBOOK_BYTES, parsers
from carrel.hub.web.html.downloads import attachment

from ...fake_service import FakeService
from .invocation import NOTEBOOK, Carrel, carrel, client_commands, service

__all__ = ["carrel", "service"]


class TestSubmit:
    def test_a_job_sends_the_given_options(self, service: FakeService, carrel: Carrel) -> None:
        done = carrel(
            "submit", "train.ipynb", "-p", "lr", "0.05", "-p", "deep", "true", "-p", "name", "adam",
            "-r", "version", "1.10", "--devices", "1", "--time", "30m", "--group", "cs101",
            "--output", "out.ipynb", "--kernel", "python3", "--label", "course=ml",
        )  # fmt: skip  # grouped by meaning
        assert done.exit_code == 0, done.output
        assert done.output == (
            "Submitted j-00000000: queued.\nFollow its log with: carrel logs -f j-00000000\n"
        )
        body = service.called("POST", "requests")[0]
        assert body.pop("idempotency_key").startswith("cli-")
        assert body == {
            "kind": "job", "group": "cs101", "devices": 1, "seconds": 1800,
            "notebook": {"name": "train.ipynb", "content": NOTEBOOK},
            "parameters": {"lr": 0.05, "deep": True, "name": "adam", "version": "1.10"},
            "kernel": "python3", "output": "out.ipynb", "labels": {"course": "ml"},
        }  # fmt: skip  # grouped by meaning

    def test_a_lost_response_makes_one_job(self, service: FakeService, carrel: Carrel) -> None:
        service.drop_next = ["POST"]
        assert carrel("submit", "train.ipynb", "--group", "cs101").exit_code == 0
        first, second = service.called("POST", "requests")
        assert first == second
        assert len(service.requests) == 1

    def test_two_invocations_make_two_jobs(self, service: FakeService, carrel: Carrel) -> None:
        for _ in range(2):
            carrel("submit", "train.ipynb", "--group", "cs101")
        assert len(service.requests) == 2

    def test_the_only_group_need_not_be_named(self, service: FakeService, carrel: Carrel) -> None:
        done = json.loads(carrel("submit", "train.ipynb", "--json").stdout)
        assert done["group"] == "cs101"
        assert service.called("POST", "requests")[0]["group"] == "cs101"

    @pytest.mark.parametrize(
        ("groups", "said"), [([], "you are not in one"), (["a", "b"], "--group: a, b")]
    )
    def test_several_groups_require_a_choice(
        self, service: FakeService, carrel: Carrel, groups: list[str], said: str
    ) -> None:
        me = {"name": "anna", "admin": False, "groups": groups, "teaches": []}
        service.extra["GET", "/services/carrel/api/v1/me"] = lambda handler: handler.say(200, me)
        done = carrel("submit", "train.ipynb")
        assert said in done.stderr
        assert not service.requests

    @pytest.mark.parametrize(
        ("content", "said"),
        [
            (b"\xff\xfe{}", "is not UTF-8 text (byte 0)"),
            (b"print('hello')", "is not JSON"),
            (b"[1, 2]", "no list of cells"),
            (b'{"cells": 3}', "no list of cells"),
            (b"[" * 100_000, "nested too deeply"),
            (b" " * (MAX_NOTEBOOK_BYTES + 1), "up to 32 MiB"),
            (None, "cannot be read: No such file"),
        ],
        ids=["bad UTF-8", "no JSON", "a list", "no cells", "deep", "too large", "missing"],
    )
    def test_an_invalid_notebook_is_refused_before_submission(
        self, service: FakeService, carrel: Carrel, content: bytes | None, said: str
    ) -> None:
        if content is not None:
            Path("odd.ipynb").write_bytes(content)
        done = carrel("submit", "odd.ipynb", "--group", "cs101")
        assert said in done.stderr
        assert done.exit_code != 0
        assert not service.calls

    def test_a_refusal_is_the_service_s_sentence(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        error = {"code": "over_maximum", "message": "Too many.", "accepted": "Up to 2."}
        service.refuse = (409, error)
        done = carrel("submit", "train.ipynb", "--group", "cs101", "--devices", "99")
        assert done.stderr == "carrel: Too many. Up to 2.\n"
        done = carrel("submit", "train.ipynb", "--group", "cs101", "--json")
        assert json.loads(done.stderr) == {"error": error}
        page = "services/carrel/help/how-to/solve-errors.html#above-a-maximum"
        service.problems, service.refuse = True, (409, error | {"type": f"/{page}"})
        done = carrel("submit", "train.ipynb", "--group", "cs101")
        assert done.stderr == f"carrel: Too many. Up to 2.\nHelp: {service.site}{page}\n"
        assert done.stdout == ""


class TestTime:
    @pytest.mark.parametrize(
        ("text", "seconds"),
        [("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("90s", 90), ("45", 2700), ("1d", 86400),
         ("1:30:00", 5400), ("0:45", 2700), (" 2H ", 7200), ("1h 30min", 5400)],
    )  # fmt: skip  # grouped by meaning
    def test_durations_are_accepted_in_several_forms(self, text: str, seconds: int) -> None:
        assert parsers.seconds(text) == seconds

    @pytest.mark.parametrize("text", ["", "0", "0m", "-5", "-5m", "soon", "1.5h", "m", "1:99", "²"])
    def test_an_invalid_duration_is_refused_with_examples(self, text: str) -> None:
        with pytest.raises(InvalidInput, match="a bare number is minutes"):
            parsers.seconds(text)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("1e-3", 0.001), ("true", True), ("True", True), ("null", None), ("None", None),
     ('"7"', "7"), ("adam", "adam"), ("[1]", "[1]"), ("NaN", "NaN"), ("", ""), ("007", "007"),
     (".5", 0.5), ("1.", 1.0), ("+5", 5), ("-0.5", -0.5), ("-.5e3", -500.0),
     ("1_0", "1_0"), (".", ".")],
)  # fmt: skip  # grouped by meaning
def test_parameters_are_numbers_where_they_look_like_it(text: str, value: object) -> None:
    assert parsers.parameter(text) == value
    assert type(parsers.parameter(text)) is type(value)


class TestWait:
    @pytest.mark.parametrize(
        ("states", "status"),
        [
            (["succeeded"], 0),
            (["failed"], 1),
            (["cancelled"], 3),
            (["timed_out"], 4),
            (["succeeded", "cancelled", "timed_out"], 4),
            (["cancelled", "failed", "timed_out"], 1),
        ],
    )
    def test_the_exit_status_is_the_worst_result(
        self, service: FakeService, carrel: Carrel, states: list[str], status: int
    ) -> None:
        ids = [f"j-{number}" for number, _ in enumerate(states)]
        for id_, state in zip(ids, states, strict=True):
            service.add(id_, state=state, ended=True)
        assert carrel("wait", *ids).exit_code == status

    def test_wait_prints_changes_until_the_end(self, service: FakeService, carrel: Carrel) -> None:
        wait = {
            "place": 1,
            "ahead": 0,
            "reason": "no_free_device",
            "sentence": "Queued at position 1. Full.",
        }
        service.add("j-1", wait=wait)

        def go_on() -> None:
            service.wait_for(lambda: ("j-1", "queued") in service.shown)
            cause = {"code": "cell_error", "message": "Cell 2 raised ValueError."}
            service.change("j-1", state="failed", ended=True, wait=None, cause=cause)

        thread = threading.Thread(target=go_on)
        thread.start()
        done = carrel("wait", "j-1")
        thread.join()
        lines = done.output.splitlines()
        assert "queued, position 1  Queued at position 1. Full." in lines[0]
        assert "failed  Cell 2 raised ValueError." in lines[-1]
        assert done.exit_code == 1

    def test_json_output_has_one_object_per_line(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.add("j-1", state="succeeded", ended=True)
        done = carrel("wait", "j-1", "--json")
        assert [json.loads(line)["state"] for line in done.stdout.splitlines()] == ["succeeded"]

    def test_a_timeout_has_its_own_exit_status(self, service: FakeService, carrel: Carrel) -> None:
        service.add("j-1", state="running")
        assert carrel("wait", "j-1", "--timeout", "1s").exit_code == 5

    def test_a_missing_job_is_not_a_failed_job(self, carrel: Carrel) -> None:
        done = carrel("wait", "j-9")
        assert done.exit_code == 6
        assert "There is no request j-9." in done.stderr

    def test_submit_can_wait_too(self, service: FakeService, carrel: Carrel) -> None:
        def go_on() -> None:
            service.wait_for(lambda: service.requests)
            service.change("j-00000000", state="cancelled", ended=True)

        thread = threading.Thread(target=go_on)
        thread.start()
        assert carrel("submit", "train.ipynb", "--group", "cs101", "--wait").exit_code == 3
        thread.join()


class TestLooking:
    def test_ps_prints_a_table_and_marks_simulated_devices(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        wait = {
            "place": 2,
            "ahead": 1,
            "reason": "behind_others",
            "sentence": "Queued at position 2.",
        }
        service.add("j-1", notebook="train.ipynb", wait=wait)
        service.add("s-1", kind="session", server_name="two")
        service.grant("s-1")
        lines = carrel("ps").output.splitlines()
        assert lines[0].split() == ["ID", "STATE", "WHAT", "GROUP", "DEVICES", "SUBMITTED", "LEFT"]
        assert lines[1].split("  ")[:2] == ["j-1", "queued, position 2"]
        assert "session two" in lines[2]
        assert "1 simulated" in lines[2]

    def test_ps_prints_reasons_with_an_option(self, service: FakeService, carrel: Carrel) -> None:
        wait = {
            "place": 2,
            "ahead": 1,
            "reason": "behind_others",
            "sentence": "Queued at position 2. Why not.",
        }
        service.add("j-1", notebook="train.ipynb", wait=wait)
        service.add("s-1", kind="session", server_name="two")
        lines = carrel("ps", "--why").output.splitlines()
        assert lines[0].split()[-2:] == ["EXPECTED", "WHY"]
        assert lines[1].endswith("Queued at position 2. Why not.")

    def test_why_prints_the_reason_and_suggestions(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        answer = {
            "request_id": "j-1",
            "wait": {"place": 2, "ahead": 1, "reason": "behind_others",
                     "sentence": "Queued at position 2.",
                     "expected_at": 4e9, "latest_at": 5e9},
            "sentences": ["Queued at position 2.", "It asks for 2 devices."],
            "ahead": [{"rule": "priority", "count": 1}],
            "ahead_sentences": ["1 request goes first."],
            "suggestions": [{"change": "fewer_devices", "devices": 1, "sentence": "With 1 now."}],
        }  # fmt: skip  # grouped by meaning
        path = "/services/carrel/api/v1/requests/j-1/why"
        service.extra["GET", path] = lambda handler: handler.say(200, answer)
        ahead = units.coming(4e9 - time.time())
        assert carrel("why", "j-1").output.splitlines() == [
            "Queued at position 2.",
            "It asks for 2 devices.",
            f"Expected start: 2 Oct 2096 07:06 ({ahead}), at the latest 11 Jun 2128 08:53.",
            "Ahead of it:",
            "  1 request goes first.",
            "What would help:",
            "  With 1 now.",
            "    carrel change j-1 --devices 1",
        ]
        found = json.loads(carrel("why", "j-1", "--json").output)
        assert found["suggestions"][0]["devices"] == 1

    def test_a_change_sends_the_given_options(self, service: FakeService, carrel: Carrel) -> None:
        found = service.add("j-1", devices=1, seconds=1800)
        sent: list[Any] = []

        def remember(handler: Any) -> None:
            sent.append(json.loads(handler.raw))
            handler.say(200, found)

        service.extra["POST", "/services/carrel/api/v1/requests/j-1/change"] = remember
        done = carrel("change", "j-1", "--devices", "1", "--time", "30m")
        assert done.output == ("j-1 now requests 1 device, 30 min at most, in the group cs101.\n")
        assert sent == [{"devices": 1, "seconds": 1800}]
        assert "Give at least one option to change" in carrel("change", "j-1").stderr
        carrel("change", "j-1", "--model", "any")
        carrel("change", "j-1", "--model", "NVIDIA H200")
        assert sent[1:] == [{"model": None}, {"model": "NVIDIA H200"}]
        assert "Unknown device model" in carrel("change", "j-1", "--model", " ").stderr

    def test_ps_lists_unfinished_requests_by_default(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        queries: list[dict[str, list[str]]] = []

        def remember(handler: Any) -> None:
            queries.append(handler.query)
            handler.say(200, {"requests": []})

        service.extra["GET", "/services/carrel/api/v1/requests"] = remember
        carrel("ps")
        carrel("ps", "--all", "--everybody")
        carrel("ps", "--state", "timed out")
        assert "running" in queries[0]["state"]
        assert "failed" not in queries[0]["state"]
        assert "state" not in queries[1]
        assert [query["mine"] for query in queries] == [["true"], ["false"], ["true"]]
        assert queries[2]["state"] == ["timed_out"]

    def test_show_prints_all_details(self, service: FakeService, carrel: Carrel) -> None:
        service.add(
            "j-1", state="failed", ended=True, notebook="train.ipynb", parameters={"lr": 0.05},
            device_seconds=1234.4, labels={"course": "ml"},
            cause={"code": "cell_error", "message": "Cell 2 raised ValueError.",
                   "details": "Traceback …\nValueError: no"},
        )  # fmt: skip  # grouped by meaning
        service.change("j-1", lease={
            "id": "j-1.1", "epoch": 1, "state": "released", "granted_at": 1.0, "pid": 77,
            "devices": [{"id": "SIM-1", "node": "n", "index": 0, "model": "Simulated GPU",
                         "memory_bytes": 2**30, "simulated": True, "state": "free"}],
        })  # fmt: skip  # grouped by meaning
        text = carrel("show", "j-1").output
        for part in (
            "Cell 2 raised ValueError. (cell_error: user)", "ValueError: no", "lr = 0.05",
            "course=ml", "0.3 device-hours",
            "j-1.1, released, process 77", "(simulated), 1 GiB, SIM-1",
        ):  # fmt: skip  # grouped by meaning
            assert part in text

    def test_show_prints_the_last_reported_values(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        held = {"id": "j-1.1", "epoch": 1, "state": "active", "granted_at": 1.0, "devices": []}
        service.add("j-1", state="running", lease=held)
        assert "Reported" not in carrel("show", "j-1").output  # of a service that has none
        found = {"name": "loss", "steps": [0, 9], "values": [2.0, 0.25], "last": 0.25,
                 "least": 0.25, "most": 2.0}  # fmt: skip  # grouped by meaning
        odd = {"name": "x", "steps": [0], "values": [None], "last": None, "least": None,
               "most": None}  # fmt: skip  # grouped by meaning
        answer = {"reports": [found, odd]}
        path = "/services/carrel/api/v1/requests/j-1/reports"
        service.extra["GET", path] = lambda handler: handler.say(200, answer)
        assert "Reported values: loss 0.25, x not a number\n" in carrel("show", "j-1").output

    def test_show_prints_no_value_twice(self, service: FakeService, carrel: Carrel) -> None:
        service.add("j-1", state="running")
        lines = carrel("show", "j-1").output.splitlines()
        assert "State:           running" in lines

    def test_show_prints_the_runtime(self, service: FakeService, carrel: Carrel) -> None:
        service.add("j-1", state="succeeded", ended=True, started_at=1e9, ended_at=1e9 + 95)
        text = carrel("show", "j-1").output
        assert "Started:         9 Sep 2001 01:46:40" in text
        assert "Ended:           9 Sep 2001 01:48:15, after 1 min 35 s" in text

    def test_show_prints_the_estimate(self, service: FakeService, carrel: Carrel) -> None:
        wait = {"place": 1, "ahead": 0, "reason": "no_free_device",
                "sentence": "Queued at position 1. Full.",
                "expected_at": 4e9, "latest_at": 5e9}  # fmt: skip  # grouped by meaning
        service.add("j-1", wait=wait)
        text = carrel("show", "j-1").output
        assert "Queued at position 1. Full. Expected start: 2 Oct 2096 07:06 (in about " in text
        assert "), at the latest 11 Jun 2128 08:53." in text

    def test_the_pool_marks_simulated_devices(self, service: FakeService, carrel: Carrel) -> None:
        device = {"id": "SIM-1", "node": "here", "index": 0, "model": "Simulated GPU",
                  "memory_bytes": 2**33, "simulated": True, "state": "free"}  # fmt: skip  # grouped
        pool = {"devices": [device], "free": 1, "total": 1, "waiting": 0, "simulated": True}
        service.extra["GET", "/services/carrel/api/v1/pool"] = lambda h: h.say(200, pool)
        text = carrel("pool").output
        assert "Simulated GPU (simulated)" in text
        assert "1 of 1 device free, 0 requests waiting. All of them are simulated." in text

    def test_the_usage_total_is_the_sum_of_the_listed_requests(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        line = {"id": 7, "lease_id": "j-1.1", "request_id": "j-1", "epoch": 1, "owner": "anna",
                "group": "cs101", "devices": 1, "starts_at": 0.0, "ends_at": 60.0,
                "device_seconds": 60.0}  # fmt: skip  # grouped by meaning
        group = {"owner": "anna", "group": "cs101", "charged": 60.0, "open": 5.0}
        report = {"device_seconds": 65.0, "by_group": [group], "ledger": [line]}
        service.extra["GET", "/services/carrel/api/v1/usage"] = lambda h: h.say(200, report)
        text = carrel("usage", "--ledger").output
        assert "Together 0.02 device-hours." in text
        assert "1 Jan 1970 00:00:00  1 Jan 1970 00:01:00          0.02" in text

    def test_usage_is_filtered_by_group_and_inclusive_days(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        asked: list[dict[str, list[str]]] = []
        row = {"day": "2026-10-01", "charged": 3600.0, "open": 0.0, "first_at": 0.0, "last_at": 1.0}
        report = {"device_seconds": 60.0, "by_group": [], "by": "day", "rows": [row], "ledger": []}

        def answer(handler: Any) -> None:
            asked.append(handler.query)
            handler.say(200, report)

        service.extra["GET", "/services/carrel/api/v1/usage"] = answer
        since, until = "2026-10-01", "2026-10-31"
        text = carrel(
            "usage", "--group", "cs101", "--since", since, "--until", until, "--by", "day"
        ).output
        assert asked == [
            {"group": ["cs101"], "since": ["1790812800"], "until": ["1793491200"], "by": ["day"]}
        ]
        assert "2026-10-01      1.0   0.0" in text
        assert "Invalid date" in carrel("usage", "--since", "2026-02-30").output

    def test_usage_by_model_has_a_row_for_each(self, service: FakeService, carrel: Carrel) -> None:
        rows = [{"model": model, "charged": charged, "open": 900.0, "first_at": 0.0, "last_at": 1.0}
                for model, charged in (("", 1800.0), ("H100", 3600.0))]  # fmt: skip  # grouped
        report = {"device_seconds": 100.0, "by_group": [], "by": "model", "rows": rows,
                  "ledger": []}  # fmt: skip  # grouped by meaning
        service.extra["GET", "/services/carrel/api/v1/usage"] = lambda h: h.say(200, report)
        text = carrel("usage", "--by", "model").output
        assert "MODEL    CHARGED  OPEN\n" in text
        assert "unknown      0.5   0.2\n" in text
        assert "H100         1.0   0.2\n" in text
        refused = carrel("usage", "--by", "colour").output
        accepted = (
            "'owner', 'user', 'group', 'model', 'owner-model', 'day', 'week', 'term', 'request'"
        )
        assert accepted in " ".join(refused.replace("│", " ").split())

    def test_usage_by_group_lists_subgroups_below_their_group(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        rows = [{"group": group, "above": above, "own": own * 3600, "charged": charged * 3600,
                 "open": 900.0, "first_at": 0.0, "last_at": 1.0}
                for group, above, own, charged in (("arts", "", 20.0, 15.0),
                    ("cs", "", 0.0, 1200.0), ("cs101", "cs", 1000.0, 1195.0),
                    ("cs101-a", "cs101", 200.0, 195.0))]  # fmt: skip  # grouped by meaning
        report = {"device_seconds": 1220.0 * 3600, "by_group": [], "by": "group", "rows": rows,
                  "ledger": []}  # fmt: skip  # grouped by meaning
        service.extra["GET", "/services/carrel/api/v1/usage"] = lambda h: h.say(200, report)
        assert carrel("usage", "--by", "group", "--everybody").output.splitlines() == [
            "GROUP        CHARGED  OPEN  OWN USE",
            "arts            15.0   0.2     20.0",
            "cs           1,200.0   0.2      0.0",
            "  cs101      1,195.0   0.2  1,000.0",
            "    cs101-a    195.0   0.2    200.0",
            "Together 1,220.0 device-hours.",
        ]
        shown = json.loads(carrel("usage", "--by", "group", "--json").output)
        assert shown["rows"][2]["above"] == "cs"

    @pytest.mark.parametrize(
        ("by", "rows", "lines"),
        [
            ("user", [{"owner": "ada"}, {"owner": "bob"}], ["USER", "ada", "bob"]),
            ("week", [{"week": "2026-10-05"}], ["WEEK FROM", "2026-10-05"]),
            ("term", [{"term": ""}, {"term": "winter"}], ["TERM", "outside terms", "winter"]),
        ],
    )
    def test_usage_by_user_week_or_term(
        self,
        service: FakeService,
        carrel: Carrel,
        by: str,
        rows: list[dict[str, object]],
        lines: list[str],
    ) -> None:
        asked: list[dict[str, list[str]]] = []
        amounts = {"charged": 3600.0, "open": 0.0, "first_at": 0.0, "last_at": 1.0}
        report = {"device_seconds": 60.0, "by_group": [], "by": by, "ledger": [],
                  "rows": [row | amounts for row in rows]}  # fmt: skip  # grouped by meaning

        def answer(handler: Any) -> None:
            asked.append(handler.query)
            handler.say(200, report)

        service.extra["GET", "/services/carrel/api/v1/usage"] = answer
        table = carrel("usage", "--by", by, "--everybody").output.splitlines()[:-1]
        assert [line.partition("  ")[0] for line in table] == lines
        assert asked == [{"by": [by], "mine": ["false"]}]

    def test_a_pool_without_devices_says_so(self, service: FakeService, carrel: Carrel) -> None:
        pool = {"devices": [], "free": 0, "total": 0, "waiting": 0, "simulated": False}
        service.extra["GET", "/services/carrel/api/v1/pool"] = lambda h: h.say(200, pool)
        assert carrel("pool").output == (
            "The pool has no devices: all work runs on CPU. 0 requests waiting.\n"
        )

    def test_logs_are_printed_as_they_are(self, service: FakeService, carrel: Carrel) -> None:
        service.add("j-1", state="succeeded", ended=True)
        service.logs["j-1"] = "größer\n".encode()
        assert carrel("logs", "-f", "j-1").output == "größer\n"
        assert json.loads(carrel("logs", "j-1", "--json").stdout) == {"text": "größer\n"}


class TestOutput:
    def test_an_output_keeps_its_name_and_overwrites_no_file(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.add("j-1", state="succeeded", ended=True)
        service.outputs["j-1"] = b"first"
        assert carrel("output", "j-1").output == "Wrote train-out.ipynb.\n"
        service.outputs["j-1"] = b"second"
        refused = carrel("output", "j-1")
        assert refused.exit_code == 1
        assert "train-out.ipynb already exists." in refused.stderr
        assert Path("train-out.ipynb").read_bytes() == b"first"
        assert carrel("output", "j-1", "--force").exit_code == 0
        assert Path("train-out.ipynb").read_bytes() == b"second"

    def test_an_output_can_be_written_into_a_folder(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.add("j-1", state="succeeded", ended=True)
        service.outputs["j-1"] = b"{}"
        Path("results").mkdir()
        assert carrel("output", "j-1", "-o", "results").output == (
            "Wrote results/train-out.ipynb.\n"
        )

    def test_an_output_can_be_written_to_standard_output(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.add("j-1")
        service.outputs["j-1"] = b"{}"
        assert carrel("output", "j-1", "-o", "-").stdout_bytes == b"{}"

    @pytest.mark.parametrize("name", ["../../evil.ipynb", "/tmp/evil.ipynb", "..\\evil.ipynb"])
    def test_an_output_name_cannot_leave_the_folder(
        self, service: FakeService, carrel: Carrel, name: str
    ) -> None:
        service.add("j-1")
        path = "/services/carrel/api/v1/requests/j-1/output"
        headers = {"Content-Disposition": f'attachment; filename="{name}"'}
        service.extra["GET", path] = lambda h: h.answer(200, b"{}", "text/plain", headers)
        assert carrel("output", "j-1").exit_code == 0
        assert Path("evil.ipynb").exists()

    @pytest.mark.parametrize(
        "name",
        ["\u00fcbung.ipynb", "प्रश्न \u00a01.ipynb", 'a "b".ipynb', f"{'x' * 249}.ipynb"],
    )
    def test_an_output_keeps_a_name_beyond_ascii(
        self, service: FakeService, carrel: Carrel, name: str
    ) -> None:
        service.add("j-1")
        path = "/services/carrel/api/v1/requests/j-1/output"
        headers = {"Content-Disposition": attachment(name)}
        service.extra["GET", path] = lambda h: h.answer(200, b"{}", "text/plain", headers)
        assert carrel("output", "j-1").exit_code == 0
        assert name in {path.name for path in Path().iterdir()}

    def test_output_names_that_are_too_long_are_shortened_apart(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        for end in "ab":
            service.add(f"j-{end}")
            path = f"/services/carrel/api/v1/requests/j-{end}/output"
            headers = {"Content-Disposition": attachment(f"{'ü' * 150}{end}.ipynb")}
            service.extra["GET", path] = lambda h, sent=headers: h.answer(200, b"{}", "x/y", sent)
            assert carrel("output", f"j-{end}").exit_code == 0
        assert len(list(Path().glob(f"{'ü' * 100}*.ipynb"))) == 2

    def test_an_output_file_with_the_longest_name_is_written(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.add("j-1", state="succeeded", ended=True)
        service.files["j-1"] = {"x" * 255: b"1", f"{'ü' * 125}.txt": b"2"}
        assert carrel("output", "j-1", "--files").exit_code == 0
        found = {path.name: path.read_bytes() for path in Path("j-1-files").iterdir()}
        assert found == service.files["j-1"]


def test_cancel_accepts_several_ids(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1")
    service.add("j-2")
    assert carrel("cancel", "j-1", "j-2").exit_code == 0
    assert [request["state"] for request in service.requests.values()] == ["cancelled"] * 2


def test_cancelling_an_ended_request_says_so(service: FakeService, carrel: Carrel) -> None:
    service.add("j-1", state="succeeded", ended=True)
    assert carrel("cancel", "j-1").output == "j-1 has already ended: succeeded.\n"


class TestLogin:
    @pytest.fixture(autouse=True)
    def own_folder(self, carrel: Carrel, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
        monkeypatch.delenv("CARREL_URL")
        monkeypatch.delenv("CARREL_TOKEN")

    def test_a_pasted_token_is_tried_and_stored(self, service: FakeService, carrel: Carrel) -> None:
        done = carrel("login", service.site + "hub/home", "--token", input="pasted\n")
        assert done.output.endswith(f"Signed in to {service.site} as anna.\n")
        carrel("ps")
        assert service.headers[-1]["Authorization"] == "token pasted"
        carrel("logout")
        assert "You are not signed in." in carrel("ps").stderr

    def test_a_site_with_single_sign_on_says_what_to_do(
        self, service: FakeService, carrel: Carrel
    ) -> None:
        service.extra["GET", "/hub/login"] = lambda h: h.answer(200, b"<a>Sign in</a>", "text/html")
        done = carrel("login", service.site, "--user", "anna", input="secret\n")
        assert f"{service.site}hub/token" in done.stderr
        assert "--token" in done.stderr

    def test_a_missing_service_is_reported(self, service: FakeService, carrel: Carrel) -> None:
        done = carrel("login", service.site, "--user", "anna", input="secret\n")
        assert f"There is no JupyterHub at {service.site}" in done.stderr


def called() -> list[list[str]]:
    """Yield all commands of all users, with those of command groups."""
    return [
        words
        for name, command in sorted(client_commands().items())
        for words in (
            [[name, below] for below in command.commands]
            if isinstance(command, click.Group)
            else [[name]]
        )
    ]


@pytest.mark.parametrize("words", called(), ids=" ".join)
def test_every_command_has_a_help_text(words: list[str]) -> None:
    done = CliRunner().invoke(cli, [*words, "--help"])
    assert done.exit_code == 0
    assert "--json" in done.output or words in (["logout"], ["mcp"])
