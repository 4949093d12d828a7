"""The comparing process: what it gets, what it reads from metadata, and its time limit."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

from carrel.hub.comparison.facts import RunFacts, compare_facts
from carrel.hub.comparison.schemas import ComparedRunOut
from carrel.hub.comparison.tolerance import Tolerance
from carrel.hub.errors import CarrelError, InvalidInput, TooLarge
from carrel.hub.requests.comparison.order import ComparisonInput, ComparisonOrder
from carrel.hub.requests.comparison.process import ComparingProcess
from carrel.hub.requests.comparison.worker import compared


def _given(a: bytes, b: bytes, **parameters: object) -> ComparisonInput:
    facts = [
        RunFacts(about=ComparedRunOut(name=name), parameters=parameters) for name in ("a", "b")
    ]
    order = ComparisonOrder(
        a=facts[0], b=facts[1], size=len(a), form="notebook", tolerance=Tolerance()
    )
    return ComparisonInput(order=order, a=a, b=b)


def _notebook(version: str, outcome: str, *, injected: str = "") -> bytes:
    cells = [{"cell_type": "code", "id": "a", "metadata": {}, "source": "1", "outputs": [],
              "execution_count": None}]  # fmt: skip  # one cell
    if injected:
        extra = {"tags": ["injected-parameters"]}
        cells.insert(0, cells[0] | {"id": "p", "metadata": extra, "source": injected})
    metadata = {
        "language_info": {"name": "python", "version": version},
        "carrel": {"outcome": outcome, "image": "torch@sha256:1"},
        "papermill": {"parameters": {"lr": 0.1}},
    }
    return json.dumps(
        {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}
    ).encode()


def test_an_order_is_read_as_it_was_written() -> None:
    given = _given(b"{}\n", b"\n\x00", loss=float("nan"), size=float("inf"))
    again = ComparisonInput.read(given.written())
    assert (again.a, again.b) == (given.a, given.b)
    assert str(again.order.a.parameters) == str(given.order.a.parameters)


def test_metadata_of_an_executed_notebook_says_how_it_ran() -> None:
    a = _notebook("3.11.1", "succeeded", injected="lr = 0.1")
    b = _notebook("3.12.0", "cell_error")
    found = compared(_given(a, b))
    assert [(fact.name, fact.a, fact.b, fact.equal) for fact in found.facts] == [
        ("Result", "succeeded", "cell_error", False),
        ("lr", "0.1", "0.1", True),
        ("Image", "torch@sha256:1", "torch@sha256:1", True),
        ("Language", "python 3.11.1", "python 3.12.0", False),
    ]
    assert found.summary.cells == found.summary.equal == 1  # the injected cell is no cell


def test_packages_and_inputs_of_receipts_are_compared_entry_by_entry() -> None:
    about = ComparedRunOut(name="a")
    a = RunFacts(about=about, packages={"numpy": "2.0", "pip": "1"}, inputs={"home/a.csv": "11"})
    b = RunFacts(about=about, packages={"numpy": "2.1", "pip": "1"}, inputs={"home/a.csv": "11"})
    found = compare_facts(a, b, Tolerance())
    assert [(fact.name, fact.a, fact.b, fact.equal) for fact in found] == [
        ("Package numpy", "2.0", "2.1", False),
        ("Inputs", "1", "1", True),
    ]
    assert compare_facts(a, RunFacts(about=about), Tolerance()) == []  # a file says nothing


def test_the_last_line_of_the_runner_is_not_compared() -> None:
    given = _given(b"loss 1\ncarrel: `a` ran\n", b"loss 1.0\ncarrel: `b` ran\n")
    found = compared(replace(given, order=replace(given.order, form="log")))
    assert found.equal


def test_a_comparison_that_takes_too_long_is_ended() -> None:
    notebook = _notebook("3.11", "succeeded")
    with pytest.raises(TooLarge, match="took longer than"):
        ComparingProcess(seconds=0.01).compare(_given(notebook, notebook))


def test_the_process_reports_what_is_wrong_with_a_notebook() -> None:
    with pytest.raises(InvalidInput, match="is not a notebook"):
        ComparingProcess().compare(_given(b"[]", b"{}"))


def test_a_lone_surrogate_is_replaced() -> None:
    a = _notebook("3.11", "succeeded").replace(b'"source": "1"', b'"source": "\\ud800 1"')
    found = ComparingProcess().compare(_given(a, _notebook("3.11", "ok")))
    (cell,) = found.cells
    assert cell.source_rows is not None
    assert [(row.kind, row.a, row.b) for row in cell.source_rows.rows] == [("changed", "? 1", "1")]


@pytest.mark.parametrize(
    ("program", "error", "sentence"),
    [
        ("raise KeyError('cells')", CarrelError, "failed by an error in Carrel"),
        ("raise MemoryError", TooLarge, "too much time or memory"),
        ("import os; os.kill(os.getpid(), 9)", TooLarge, "too much time or memory"),
    ],
)
def test_the_end_of_the_process_has_a_sentence(
    program: str, error: type[CarrelError], sentence: str
) -> None:
    with pytest.raises(CarrelError, match=sentence) as raised:
        ComparingProcess(command=(sys.executable, "-c", program)).compare(_given(b"{}", b"{}"))
    assert type(raised.value) is error
