"""A teacher compares the submissions that ``carrel serve`` answers for, in a real browser."""

from __future__ import annotations

import asyncio
import csv
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from carrel.extensions.model_server.application import application
from carrel.extensions.model_server.request_queue import RequestQueue
from carrel.extensions.model_server.served_models import AllResults

from .browser import chromium, take_picture

SCRIPT = "<img src=x onerror=\"document.title = 'run'\">"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium(patience_ms=20_000) as made:
        yield made


def verdicts(rows: list[str]) -> list[dict[str, Any]]:
    """Return what three submissions say of texts; that of Cy raises on long ones."""
    return [
        {
            "ada": "good" if "good" in row else "bad",
            "ben": "good" if "good" in row else "bad",
            "cy": {"error": f"ValueError: {SCRIPT}"} if len(row) > 20 else "good",
        }
        for row in rows
    ]


@contextmanager
def served(every: Callable[[list[str]], list[dict[str, Any]]] = verdicts) -> Iterator[str]:
    """Serve three submissions on the loopback; return the address."""
    sockets = bind_sockets(0, "127.0.0.1")
    ended = asyncio.Event()
    loops: list[asyncio.AbstractEventLoop] = []
    ready = threading.Event()

    async def serve() -> None:
        loops.append(asyncio.get_running_loop())
        models = {**dict.fromkeys(("ada", "ben", "cy"), list), "all": AllResults(every)}
        queue = RequestQueue(models, queued_rows=2)
        server = HTTPServer(application("ps4", queue, 10.0))
        server.add_sockets(sockets)
        worker = asyncio.create_task(queue.work())
        ready.set()
        await ended.wait()
        worker.cancel()
        server.stop()
        await server.close_all_connections()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(60)
        yield f"http://127.0.0.1:{sockets[0].getsockname()[1]}"
    finally:
        loops[0].call_soon_threadsafe(ended.set)
        thread.join()


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    with served() as address:
        context = browser.new_context()
        try:
            page = context.new_page()
            page.goto(address)
            page.get_by_role("link", name="Compare all models").click()
            yield page
        finally:
            context.close()


def cells(page: Page) -> list[list[str]]:
    lines = page.locator("#table tbody tr").all()
    return [line.locator("th, td").all_inner_texts() for line in lines]


def compare(page: Page, rows: str, expected: str = "") -> None:
    page.get_by_label("Rows", exact=True).fill(rows)
    page.get_by_label("Expected results").fill(expected)
    page.get_by_label("Expected results").press("Tab")
    page.keyboard.press("Enter")


def test_disagreements_errors_and_accuracy_are_in_one_table(page: Page, tmp_path: Path) -> None:
    rows = ["good work", "a bad day", "this text is longer than the others"]
    compare(page, "\n".join(rows), "good\nbad\nbad")
    expect(page.get_by_role("status")).to_have_text("3 rows, 2 with disagreements. ")
    assert page.locator("#table thead th").all_inner_texts() == [
        *("Row", "Agreement", "Expected"),
        *("ada", "ben", "cy"),
    ]
    error = f"Error: ValueError: {SCRIPT}"
    assert cells(page) == [
        ["Accuracy", "", "", "100.0 %", "100.0 %", "33.3 %"],
        [rows[0], "agree", "good", "good", "good", "good"],
        [rows[1], "differ", "bad", "bad", "bad", "good"],
        [rows[2], "differ", "bad", "bad", "bad", error],
    ]
    assert page.locator("mark").all_inner_texts() == ["good", error]
    take_picture(page, "served-comparison", full_page=True)
    assert page.title() == "Compare ps4", "The text of an error is no markup."

    page.get_by_label("Only rows with disagreements").check()
    assert [line[0] for line in cells(page)] == ["Accuracy", *rows[1:]]

    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    path = tmp_path / "comparison.csv"
    download.value.save_as(path)
    with path.open(newline="", encoding="utf-8-sig") as file:
        saved = list(csv.reader(file))
    assert saved == [
        ["row", "agreement", "expected", "ada", "ben", "cy"],
        [rows[0], "agree", "good", "good", "good", "good"],
        [rows[1], "differ", "bad", "bad", "bad", "good"],
        [rows[2], "differ", "bad", "bad", "bad", error],
    ]


def test_a_cell_of_the_csv_file_is_no_formula(page: Page, tmp_path: Path) -> None:
    compare(page, "=1+1\ngood;=1+1\n-1.5")
    with page.expect_download() as download:
        page.get_by_role("button", name="Save as CSV").click()
    path = tmp_path / "comparison.csv"
    download.value.save_as(path)
    text = path.read_bytes().decode()
    assert text.startswith("\ufeff"), "Spreadsheets then read it as UTF-8."
    assert '"\'=1+1"' in text
    assert '"good;\'=1+1"' in text
    assert '"-1.5"' in text


@pytest.mark.parametrize(
    ("values", "expected", "accuracy"),
    [
        ([True, False], "True\nfalse", "100.0 %"),
        ([True, False], "1\n0", "0.0 %"),
        (["01", "1"], "1\n1", "50.0 %"),
        ([1, 2], "1.0\n3", "50.0 %"),
        ([1.5, 2.25], "1.5\n2.25", "no classes"),
        ([2**53, 7], f"{2**53 + 1}\n7", "50.0 %"),
    ],
)
def test_results_are_compared_as_what_they_are(
    browser: Browser, values: list[Any], expected: str, accuracy: str
) -> None:
    with served(lambda rows: [{"ada": values[int(row)]} for row in rows]) as address:
        page = browser.new_page()
        page.goto(f"{address}/compare")
        compare(page, "0\n1", expected)
        expect(page.get_by_role("row", name="Accuracy").locator("td").last).to_have_text(accuracy)
        page.close()


@pytest.mark.parametrize(
    ("form", "rows", "expected", "sentence"),
    [
        ("json", "{}", "", "The rows cannot be read: It is not a list."),
        ("numbers", "1,2\n3,x", "", "Line 2 has a cell that is no number."),
        ("text", "a\nb", "good", "There are 2 rows and 1 expected results."),
    ],
)
def test_what_cannot_be_read_gets_a_sentence(
    page: Page, form: str, rows: str, expected: str, sentence: str
) -> None:
    page.get_by_label("Form of the rows").select_option(form)
    compare(page, rows, expected)
    expect(page.get_by_role("status")).to_contain_text(sentence)


def test_rows_come_from_a_file(page: Page, tmp_path: Path) -> None:
    path = tmp_path / "rows.json"
    path.write_text('["good", "other"]')
    page.get_by_label("Or rows from a file").set_input_files(path)
    expect(page.get_by_label("Form of the rows")).to_have_value("json")
    page.get_by_role("button", name="Compare").press("Enter")
    expect(page.get_by_role("status")).to_contain_text("2 rows, 1 with disagreements")
