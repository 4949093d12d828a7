"""``carrel report``: periods, tables and files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from carrel.hub.web.openapi.usage_examples import ANSWERS

from ...fake_service import FakeService
from .invocation import Carrel, carrel, service

__all__ = ["carrel", "service"]

OCTOBER = {"since": ["1790812800"], "until": ["1793491200"]}


@pytest.mark.parametrize(
    ("options", "query"),
    [
        ((), {}),
        (("--month", "2026-10"), OCTOBER),
        (("--from", "2026-10-01", "--to", "2026-10-31"), OCTOBER),
    ],
)
def test_the_period_is_sent(
    service: FakeService, carrel: Carrel, options: tuple[str, ...], query: dict[str, list[str]]
) -> None:
    asked: list[dict[str, list[str]]] = []

    def answer(handler: Any) -> None:
        asked.append(handler.query)
        handler.say(200, ANSWERS["SiteReportOut"])

    service.extra["GET", "/services/carrel/api/v1/report"] = answer
    done = carrel("report", *options)
    assert done.exit_code == 0, done.output
    assert asked == [query]
    assert "DEVICE MODEL  DEVICE-HOURS  OF THE POOL  COST (EUR)  KWH (ESTIMATE)" in done.output
    assert "NVIDIA H100            2.0        25.0%        5.00             1.4" in done.output
    assert json.loads(carrel("report", *options, "--json").stdout)["total"]["money"] == "5.00"


def test_the_report_is_written_as_csv(service: FakeService, carrel: Carrel, tmp_path: Path) -> None:
    service.extra["GET", "/services/carrel/api/v1/report"] = lambda h: h.say(
        200, ANSWERS["SiteReportOut"]
    )
    done = carrel("report", "--csv", "october.csv")
    assert done.output.startswith("Wrote the report of ")
    head, *lines = (tmp_path / "october.csv").read_text().splitlines()
    assert head.startswith("by,name,device_seconds,device_hours,of_pool,")
    assert "model,NVIDIA H100,7200.0,2.0,0.25,,,,5.0,EUR,1.4,7000.0,1800.0,1.25" in lines
    assert "cannot be written" in carrel("report", "--csv", "none/october.csv").output


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--month", "2026-13"), "Invalid month"),
        (("--month", "1969-12"), "from 1970-01"),
        (("--month", "2026-10", "--to", "2026-10-03"), "either --month"),
        (("--to", "2026-10-03"), "add --from"),
    ],
)
def test_a_wrong_period_is_refused(carrel: Carrel, options: tuple[str, ...], said: str) -> None:
    done = carrel("report", *options)
    assert done.exit_code != 0
    assert said in done.output


def test_a_replay_is_printed_and_written_as_csv(
    service: FakeService, carrel: Carrel, tmp_path: Path
) -> None:
    asked: list[dict[str, list[str]]] = []

    def answer(handler: Any) -> None:
        asked.append(handler.query)
        handler.say(200, ANSWERS["WhatIfOut"])

    service.extra["GET", "/services/carrel/api/v1/report/what-if"] = answer
    done = carrel("report", "what-if", "--devices", "+4", "--quota", "cs101=8", "--days", "30")
    assert done.exit_code == 0, done.output
    assert asked == [{"devices": ["+4"], "quota": ["cs101=8"], "days": ["30"]}]
    assert "8 devices now, 12 then. Utilization 71.0% now, 47.0% then." in done.output
    assert "REQUESTS  MEDIAN WAIT  MEDIAN THEN  90% WAIT  90% THEN" in done.output
    assert carrel("report", "what-if", "--devices", "+4", "--csv", "a.csv").exit_code == 0
    assert (tmp_path / "a.csv").read_text().splitlines()[1] == ",now,8,812,40.0,900.0,0.71,0"


def test_the_semester_plan_is_printed_and_written_as_csv(
    service: FakeService, carrel: Carrel, tmp_path: Path
) -> None:
    service.extra["GET", "/services/carrel/api/v1/plan/semester"] = lambda h: h.say(
        200, ANSWERS["SemesterPlanOut"]
    )
    done = carrel("plan", "semester")
    assert done.exit_code == 0, done.output
    assert "2026-12-01: lab 6 and cs101 4 need 10 devices; the pool has 8." in done.output
    assert (
        "ps1 of cs101: 2 devices, 2026-12-01 13:59-23:59 Europe/Berlin; 4 would be needed"
        in done.output
    )
    assert carrel("plan", "semester", "--csv", "plan.csv").exit_code == 0
    assert "2026-12-01,cs101,32.0,0,10,8" in (tmp_path / "plan.csv").read_text()
