"""The API's description and the page that is written from it."""

from __future__ import annotations

from ....rest_api import PAGE, page
from ..fakes import World


def test_the_page_is_the_description() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run: python -m tests.rest_api"


def test_errors_are_problems_with_a_stable_code() -> None:
    answer = World().program("ada-all").get("/services/carrel/api/v1/requests/j-nothing")
    assert answer.headers["content-type"] == "application/problem+json"
    problem = answer.json()
    assert (problem["status"], problem["title"], problem["code"]) == (404, "Not Found", "not_found")
    assert problem["detail"] == problem["error"]["message"]


def test_every_body_has_an_example_and_every_error_is_a_problem() -> None:
    described = World().app.openapi()
    for operations in described["paths"].values():
        for operation in operations.values():
            assert "422" not in operation["responses"]
            for status, answer in operation["responses"].items():
                if int(status) >= 400:
                    assert list(answer["content"]) == ["application/problem+json"]
