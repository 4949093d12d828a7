"""Calls to served models over their socket."""

from __future__ import annotations

import asyncio
import json
import math
import os
import pickle
import signal
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import httpx
import pytest

from carrel.extensions.model_server import served_models, served_sockets
from carrel.extensions.model_server.application import serve
from carrel.extensions.model_server.request_queue import Model, RequestQueue
from carrel.hub.errors import Conflict, InvalidInput, NotFound

SOURCE = """
def lengths(rows):
    return [len(row) for row in rows]

models = {"ada": lengths, "ben": lengths}
number = 3
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "served.py").write_text(SOURCE)
    return tmp_path


def lengths(rows: list[str]) -> list[int]:
    return [len(row) for row in rows]


def answers(
    *calls: tuple[str, str, Any],
    models: Mapping[str, Model] | None = None,
    title: str = "Lengths",
) -> list[httpx.Response]:
    """Serve models, else those of the file, and return the answers to calls."""

    async def run() -> list[httpx.Response]:
        served = served_models.load("served.py:models") if models is None else models
        queue = RequestQueue(served, queued_rows=3)
        ready = asyncio.Event()
        with served_sockets.published("lengths") as path:
            server = asyncio.create_task(serve(title, queue, path, deadline=5, ready=ready.set))
            await ready.wait()
            assert served_sockets.find("lengths") == path
            with pytest.raises(Conflict, match="lengths is served already"):
                served_sockets.published("lengths").__enter__()
            transport = httpx.AsyncHTTPTransport(uds=str(path))
            async with httpx.AsyncClient(transport=transport, base_url="http://served") as client:
                found = [
                    await client.request(method, address, content=body)
                    for method, address, body in calls
                ]
            os.kill(os.getpid(), signal.SIGTERM)
            await server
        assert served_sockets.find("lengths") is None
        return found

    return asyncio.run(run())


def test_the_page_the_description_and_a_call() -> None:
    rows = json.dumps({"rows": ["a", "abc"], "deadline": 2})
    page, script, description, answer, status = answers(
        ("GET", "/", None),
        ("GET", "/page.js", None),
        ("GET", "/openapi.json", None),
        ("POST", "/models/ben", rows),
        ("GET", "/status", None),
    )
    assert "<option>ada</option><option>ben</option>" in page.text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert script.headers["Content-Type"] == "text/javascript"
    call = description.json()["paths"]["/models/{model}"]["post"]
    assert call["parameters"][0]["schema"]["enum"] == ["ada", "ben"]
    assert (answer.status_code, answer.json()) == (200, {"results": [1, 3]})
    counts = {"answered": 1, "refused": 0, "late": 0, "failed": 0}
    assert status.json() == counts | {"executing": None}


def test_bad_calls_get_a_sentence() -> None:
    found = answers(
        ("POST", "/models/ada", "no JSON"),
        ("POST", "/models/ada", '{"row": []}'),
        ("POST", "/models/ada", '{"rows": ["a"], "deadline": "soon"}'),
        ("POST", "/models/ada", '{"rows": ["a"], "deadline": 1, "more": 1}'),
        ("POST", "/models/ada", '{"rows": ["a"], "deadline": 1' + "0" * 400 + "}"),
        ("POST", "/models/ada", "[" * 100_000),
        ("POST", "/models/ada", '{"rows": [NaN]}'),
        ("POST", "/models/eve", '{"rows": ["a"]}'),
        ("POST", "/models/ada", '{"rows": [1]}'),
        ("POST", "/models/ada", '{"rows": ["a", "a", "a", "a"]}'),
        ("GET", "/other", None),
    )
    told = [(each.status_code, each.json()["error"]["message"]) for each in found]
    assert told == [
        (400, "The body is no JSON."),
        (400, "The body has no list of rows."),
        (400, "'soon' is no deadline."),
        (400, "The body has unknown parts: more."),
        (400, "1000000000000000000000000000000000000000 is no deadline."),
        (400, "The body is no JSON."),
        (400, "The body is no JSON."),
        (404, "There is no model eve."),
        (500, "The model raised TypeError: object of type 'int' has no len()"),
        (413, "4 rows are too many for one request."),
        (404, "There is no such address. models/NAME, or openapi.json."),
    ]


@pytest.mark.parametrize(
    ("source", "kind", "sentence"),
    [
        ("missing.py:f", NotFound, "There is no file missing.py"),
        ("missing_module:f", NotFound, "There is no module missing_module"),
        ("served.py:missing", NotFound, "served.py has no missing"),
        ("served.py:number", InvalidInput, "number is int"),
        ("served.py", InvalidInput, "served.py cannot be served"),
        ("model.h5", InvalidInput, "model.h5 cannot be served"),
    ],
)
def test_what_cannot_be_served(source: str, kind: type[Exception], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        served_models.load(source)


def test_an_unfitted_pipeline_is_refused_before_calls(home: Path) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    path = home / "unfitted.pkl"
    path.write_bytes(pickle.dumps(linear_model.LogisticRegression()))
    with pytest.raises(InvalidInput, match="unfitted is not fitted"):
        served_models.load(str(path))
    path.write_bytes(pickle.dumps(linear_model.LogisticRegression().fit([[0.0], [1.0]], [0, 1])))
    assert served_models.load(str(path))["unfitted"]([[2.0]]) == [1]


def test_estimators_of_every_source_are_checked(home: Path) -> None:
    pytest.importorskip("sklearn")
    (home / "estimators.py").write_text(
        "from sklearn.base import BaseEstimator\n"
        "from sklearn.linear_model import Ridge\n"
        "class Constant(BaseEstimator):\n"
        "    def fit(self, rows, labels):\n"
        "        return self\n"
        "    def predict(self, rows):\n"
        "        return [7 for _ in rows]\n"
        "unfitted = Ridge()\n"
        "several = {'ridge': Ridge()}\n"
        "constant = Constant()\n"
    )
    for source, name in (("unfitted", "unfitted"), ("several", "ridge")):
        with pytest.raises(InvalidInput, match=f"{name} is not fitted"):
            served_models.load(f"estimators.py:{source}")
    # The user's own estimator may have nothing to learn.
    assert served_models.load("estimators.py:constant")["constant"]([[0.0]]) == [7]
    path = home / "constant.pkl"
    path.write_bytes(pickle.dumps(sys.modules["estimators"].constant))
    assert served_models.load(str(path))["constant"]([[0.0]]) == [7]


@pytest.mark.parametrize(
    ("source", "name"),
    [("served.py:models", "models"), ("package.part:Sentiment_Model", "sentiment-model")],
)
def test_the_name_in_the_address(source: str, name: str) -> None:
    assert served_sockets.check_name(served_sockets.name_of(source)) == name
    with pytest.raises(InvalidInput, match="cannot be part of an address"):
        served_sockets.check_name("../other")


class Lengths:
    """A pipeline whose errors and results a test chooses by its rows."""

    def predict(self, rows: list[str]) -> list[Any]:
        if "bad" in rows:
            raise ValueError("of bad")
        if "short" in rows:
            return []
        return [math.nan if row == "nan" else len(row) for row in rows]


class LikeShelf(dict[str, Lengths]):
    steps_kept = 1

    def execute_plainly(self, name: str, rows: list[str]) -> list[Any]:
        return self[name].predict(rows)

    def results(self, rows: list[str]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for name, pipeline in self.items():
            try:
                found[name] = pipeline.predict(rows)
            except ValueError as error:
                found[name] = error
        return found


def test_a_row_that_a_pipeline_refuses_is_not_told_to_others() -> None:
    every = served_models.all_of(LikeShelf(ada=Lengths()))
    assert every(["a", "bad", "abc"]) == [
        {"ada": 1},
        {"ada": {"error": "ValueError: of bad"}},
        {"ada": 3},
    ]


def test_a_bad_row_costs_executions_of_halves() -> None:
    calls: list[int] = []

    class Counted(Lengths):
        def predict(self, rows: list[str]) -> list[Any]:
            calls.append(len(rows))
            return super().predict(rows)

    every = served_models.all_of(LikeShelf(ada=Counted()))
    found = every([*["a"] * 15, "bad"])
    assert found == [{"ada": 1}] * 15 + [{"ada": {"error": "ValueError: of bad"}}]
    assert calls == [16, 8, 8, 4, 4, 2, 2, 1, 1]


@pytest.mark.parametrize(
    ("row", "sentence"),
    [
        ("nan", "ValueError: Out of range float values are not JSON compliant"),
        ("short", "InvalidInput: The model returned 0 results for 1 rows."),
    ],
)
def test_a_result_that_cannot_be_sent_is_an_error_in_its_place(row: str, sentence: str) -> None:
    class Zeros(Lengths):
        def predict(self, rows: list[str]) -> list[Any]:
            return [0 for _ in rows]

    every = served_models.all_of(LikeShelf(ada=Lengths(), ben=Zeros()))
    first, second = every(["a", row])
    assert first == {"ada": 1, "ben": 0}
    assert second["ben"] == 0
    assert second["ada"]["error"].startswith(sentence)


def test_pipelines_of_a_shelf_have_a_page_that_compares_them() -> None:
    every = served_models.AllResults(lengths)
    models = {**dict.fromkeys(("<ada>", "ben"), lengths), "all": every}
    title = "<b>ps4</b>"
    index, page, script = answers(
        ("GET", "/", None),
        ("GET", "/compare", None),
        ("GET", "/compare.js", None),
        models=models,
        title=title,
    )
    assert '<a href="compare">' in index.text
    assert (page.status_code, script.status_code) == (200, 200)
    assert "Compare &lt;b&gt;ps4&lt;/b&gt;" in page.text
    assert title not in page.text
    assert 'data-rows="3"' in page.text, "A call of the page has no more rows than may wait."
    assert 'data-deadline="100"' in page.text
    for each in (index, page):
        policy = each.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe-inline" not in policy.partition("script-src")[2].partition(";")[0]
        assert each.headers["X-Content-Type-Options"] == "nosniff"


def test_models_that_are_no_shelf_have_no_page_of_comparison() -> None:
    models = dict.fromkeys(("ada", "all"), lengths)
    index, page = answers(("GET", "/", None), ("GET", "/compare", None), models=models)
    assert "compare" not in index.text
    assert page.status_code == 404
    assert page.json()["error"]["accepted"] == "carrel serve FOLDER."


def test_sessions_of_one_user_have_names_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/one/")
    with served_sockets.published("model") as path:
        path.touch()
        first = served_sockets.names_folder()
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/two/")
        assert served_sockets.names_folder() != first
        assert (first / "model").readlink() == path
        monkeypatch.setenv("JUPYTERHUB_SERVICE_PREFIX", "/user/ada/one/")
