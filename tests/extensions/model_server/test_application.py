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
nothing = {}
slash = {"a/b": lengths}

class Kind:
    def predict(self, rows):
        return rows

async def later(rows):
    return rows

def two(rows, more):
    return rows
"""


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "served.py").write_text(SOURCE)
    (tmp_path / "broken.py").write_text("def f(:")
    (tmp_path / "needs.py").write_text("import a_module_that_is_missing")
    (tmp_path / "exits.py").write_text("raise SystemExit(3)")
    (tmp_path / "weights.pt").write_bytes(b"")
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


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        (b"no JSON", "The body is not JSON: Expecting value: line 1 column 1 (char 0)."),
        (b"", "The body is not JSON: Expecting value: line 1 column 1 (char 0)."),
        (b'{"rows": ["\xe9"]}', "The body is not JSON: it is not UTF-8."),
        (b"[" * 100_000, "The body is not JSON: it is nested too deeply."),
        (b'{"rows": [NaN]}', "The body is not JSON: JSON has no NaN."),
        (b'{"rows": [1e999]}', "The body is not JSON: the number 1e999 is too large."),
        (
            b'{"rows": [1' + b"0" * 5000 + b"]}",
            "The body is not JSON: an integer in it has too many digits.",
        ),
        (b'{"row": []}', "The body has no list of rows."),
        (b"null", "The body has no list of rows."),
        (b'{"rows": "abc"}', "The body has no list of rows."),
        (b'{"rows": ["a"], "deadline": 1, "more": 1}', "The body has unknown parts: more."),
        *(
            (b'{"rows": ["a"], "deadline": %s}' % given, f"The deadline {shown} is not possible.")
            for given, shown in (
                (b'"soon"', '"soon"'),
                (b"0", "0"),
                (b"-1", "-1"),
                (b"101", "101"),
                (b"null", "null"),
                (b"true", "true"),
                (b"[5]", "[5]"),
                (b"1" + b"0" * 400, "1" + "0" * 39),
            )
        ),
        (b'{"rows": ["a"], "deadline": Infinity}', "The body is not JSON: JSON has no Infinity."),
    ],
)
def test_a_body_of_another_form_is_refused(body: bytes, sentence: str) -> None:
    (found,) = answers(("POST", "/models/ada", body))
    assert (found.status_code, found.json()["error"]["message"]) == (400, sentence)


def test_bad_calls_get_a_sentence() -> None:
    found = answers(
        ("POST", "/models/eve", '{"rows": ["a"]}'),
        ("POST", f"/models/{'e' * 1000}", '{"rows": ["a"]}'),
        ("POST", "/models/ada", '{"rows": ["a", "a", "a", "a"]}'),
        ("GET", "/other", None),
        ("PUT", "/models/ada", None),
        ("POST", "/models/%ff", '{"rows": ["a"]}'),
    )
    told = [(each.status_code, each.json()["error"]["message"]) for each in found]
    assert told == [
        (404, "There is no model eve."),
        (404, f"There is no model {'e' * 80}."),
        (413, "4 rows are too many for one request."),
        (404, "There is no such address. models/NAME, or openapi.json."),
        (405, "PUT is refused here: Method Not Allowed."),
        (400, "POST is refused here: Bad Request."),
    ]


def test_no_rows_have_no_results() -> None:
    (found,) = answers(("POST", "/models/ada", '{"rows": []}'))
    assert found.json() == {"results": []}


class SilentError(Exception):
    """An error of a user whose text cannot be had."""

    def __str__(self) -> str:
        raise RuntimeError


def raising(error: BaseException) -> Model:
    def model(_rows: list[Any]) -> list[Any]:
        raise error

    return model


async def asynchronous(rows: list[Any]) -> list[Any]:
    return rows


def nested(_rows: list[Any]) -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return [found]


UNSENDABLE = "The result of the model cannot be sent as JSON: "


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (lengths, "The model raised TypeError: object of type 'int' has no len()"),
        (raising(AssertionError()), "The model raised AssertionError"),
        (raising(SilentError()), "The model raised SilentError"),
        (raising(SystemExit(3)), "The model raised SystemExit: 3"),
        (lambda _rows: [], "The model returned 0 results for 1 rows."),
        (lambda rows: [*rows, 1], "The model returned 2 results for 1 rows."),
        (lambda _rows: None, "The model returned NoneType for rows."),
        (lambda _rows: 3, "The model returned int for rows."),
        (asynchronous, "The model returned coroutine for rows."),
        (lambda _rows: [math.nan], f"{UNSENDABLE}a number in it is NaN or infinite."),
        (lambda _rows: [10**5000], f"{UNSENDABLE}an integer in it has too many digits."),
        (lambda _rows: [b"x"], f"{UNSENDABLE}JSON has no bytes."),
        (nested, f"{UNSENDABLE}it is nested too deeply."),
    ],
)
def test_a_fault_of_the_model_is_not_that_of_its_caller(model: Model, sentence: str) -> None:
    (found,) = answers(("POST", "/models/m", '{"rows": [1]}'), models={"m": model})
    assert (found.status_code, found.json()["error"]["message"]) == (500, sentence)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ("[1, 2]", "Row 1 is not a list. A list of 2 values for each row."),
        ("[[1, 2], [1, 2, 3]]", "Row 2 has 3 values. A list of 2 values for each row."),
        ('[["a", 1]]', "The model does not take these rows: "),
        ("[[null, 1]]", "The model does not take these rows: "),
    ],
)
@pytest.mark.parametrize("as_folder", [False, True])
def test_rows_that_an_estimator_does_not_take_are_the_callers_fault(
    home: Path, rows: str, sentence: str, *, as_folder: bool
) -> None:
    linear_model = pytest.importorskip("sklearn.linear_model")
    fitted = linear_model.LogisticRegression().fit([[0.0, 1.0], [1.0, 0.0]], [0, 1])
    path = home / "fitted" / "m.pkl"
    path.parent.mkdir()
    path.write_bytes(pickle.dumps(fitted))
    models = served_models.load(str(path.parent if as_folder else path))
    (found,) = answers(("POST", "/models/m", f'{{"rows": {rows}}}'), models=models)
    error = found.json()["error"]
    assert found.status_code == 400
    assert f"{error['message']} {error['accepted']}".startswith(sentence)


def test_rows_of_a_text_pipeline_are_texts_and_a_broken_estimator_is_told_apart(home: Path) -> None:
    pytest.importorskip("sklearn")
    from sklearn.feature_extraction.text import CountVectorizer  # noqa: PLC0415 # optional
    from sklearn.linear_model import Perceptron  # noqa: PLC0415 # the same
    from sklearn.pipeline import make_pipeline  # noqa: PLC0415 # the same

    pipeline = make_pipeline(CountVectorizer(), Perceptron()).fit(["red", "blue"], [0, 1])
    broken = pickle.loads(pickle.dumps(pipeline))  # noqa: S301 # dumped here
    del broken.steps[0][1].lowercase  # as in a pickle of another version
    models = {}
    for name, each in (("whole", pipeline), ("broken", broken)):
        path = home / f"{name}.pkl"
        path.write_bytes(pickle.dumps(each))
        models |= served_models.load(str(path))
    numbers, missing = answers(
        ("POST", "/models/whole", '{"rows": ["red", 1]}'),
        ("POST", "/models/broken", '{"rows": ["red"]}'),
        models=models,
    )
    assert (numbers.status_code, numbers.json()["error"]["message"]) == (
        400,
        "Row 2 is not a text.",
    )
    assert missing.status_code == 500
    assert "AttributeError: 'CountVectorizer' object has no" in missing.text


@pytest.mark.parametrize(
    ("source", "kind", "sentence"),
    [
        ("missing.py:f", NotFound, "There is no file missing.py"),
        ("missing_module:f", NotFound, "There is no module missing_module"),
        ("served.py:missing", NotFound, "served.py has no missing"),
        ("served.py:number", InvalidInput, "number is int"),
        ("served.py:nothing", InvalidInput, "nothing has no models"),
        ("served.py:slash", InvalidInput, "cannot have the name 'a/b'"),
        ("served.py:Kind", InvalidInput, "Kind is a class"),
        ("served.py:later", InvalidInput, "later is an async function"),
        ("served.py:two", InvalidInput, "two cannot be called with one list of rows: missing a"),
        ("served.py:", InvalidInput, "served.py: cannot be served"),
        (":lengths", InvalidInput, ":lengths cannot be served"),
        ("..:lengths", InvalidInput, "cannot be served"),
        ("served.py", InvalidInput, "served.py cannot be served"),
        ("broken.py:f", InvalidInput, "broken.py cannot be imported: SyntaxError: .*line 1"),
        ("needs.py:f", InvalidInput, "cannot be imported: ModuleNotFoundError: No module named"),
        ("exits.py:f", InvalidInput, "exits.py cannot be imported: SystemExit: 3"),
        ("weights.pt", InvalidInput, "weights.pt cannot be served.*For weights, a function"),
        ("model.h5", NotFound, "There is no file or folder model.h5"),
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
        ("nan", "ValueError: a number in it is NaN or infinite"),
        ("short", "The model returned 0 results for 1 rows."),
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
