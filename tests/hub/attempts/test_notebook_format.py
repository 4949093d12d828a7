"""One function reads notebooks for admission, the runner and grading (issue 28, item 30)."""

from __future__ import annotations

import json
import warnings

import nbformat
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from carrel.hub.admission.notebook import check_notebook
from carrel.hub.attempts.notebook_format import notebook_text, read_notebook, resolve_kernel
from carrel.hub.errors import InvalidInput

from ...odd_notebooks import BROKEN, ODD, code, text
from ..notebooks import notebook


@pytest.mark.parametrize("case", ODD)
def test_an_odd_notebook_is_repaired_with_a_sentence(case: str) -> None:
    content, repairs = ODD[case]
    found = read_notebook("a.ipynb", content)
    assert found.repairs == repairs
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        nbformat.validate(found.node)
    again = read_notebook("a.ipynb", notebook_text(found.node).encode())
    assert (again.node, again.repairs) == (found.node, ())


@pytest.mark.parametrize("case", BROKEN)
def test_what_cannot_be_repaired_is_refused_with_a_sentence(case: str) -> None:
    content, words = BROKEN[case]
    with pytest.raises(InvalidInput) as refused:
        read_notebook("a.ipynb", content)
    assert words in refused.value.message
    assert refused.value.accepted


def test_a_valid_notebook_is_stored_as_it_was_sent() -> None:
    for content in (notebook("1"), text(code(), minor=4), text(code(id="a"))):
        checked = check_notebook("a.ipynb", content)
        assert (checked.content, checked.repairs) == (content, ())


def test_the_repaired_notebook_is_stored_with_its_parameters() -> None:
    parameters = code("lr = 0.1", metadata={"tags": ["parameters", 3]}, collapsed=False)
    checked = check_notebook("a.ipynb", text(parameters, metadata={}))
    assert checked.parameters is None  # no language is named
    spec = {"kernelspec": {"name": "python3", "language": "python"}}
    checked = check_notebook("a.ipynb", text(parameters, metadata=spec))
    assert (checked.parameters, checked.kernel) == (("lr",), "python3")
    assert read_notebook("a.ipynb", checked.content).repairs == ()


def test_ids_are_the_same_each_time_a_notebook_is_read() -> None:
    for content in (ODD["format 3"][0], text(code("1"), code("1"), minor=2)):
        first, second = (read_notebook("a.ipynb", content).node for _ in range(2))
        assert [cell.id for cell in first.cells] == [cell.id for cell in second.cells]
        assert len({cell.id for cell in first.cells}) == len(first.cells)


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("python3", "python3"),
        ("Python3", "python3"),
        ("python", "python3"),
        ("IR", "ir"),
        ("julia-1.10", "julia-1.10"),
        ("python2", None),
        ("", None),
    ],
)
def test_a_kernel_is_found_as_papermill_finds_it(wanted: str, found: str | None) -> None:
    assert resolve_kernel(wanted, frozenset({"python3", "ir", "julia-1.10"})) == found


_NAMES = st.sampled_from(
    [
        "id",
        "cell_type",
        "source",
        "outputs",
        "metadata",
        "tags",
        "output_type",
        "data",
        "text",
        "kernelspec",
        "name",
    ]
)
_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=4),
    max_leaves=12,
)
_cells = st.fixed_dictionaries(
    {"cell_type": st.sampled_from(["code", "markdown", "raw", "heading", "x"]) | _values},
    optional=dict.fromkeys(("id", "metadata", "outputs", "collapsed", "attachments"), _values)
    | {"source": st.text(max_size=5) | _values, "input": st.text(max_size=5)},
)


@settings(max_examples=50, deadline=None)
@given(
    version=st.integers(2, 4),
    minor=st.integers(0, 6) | _values,
    metadata=_values,
    cells=st.lists(_cells | _values, max_size=4),
)
def test_any_notebook_is_valid_afterwards_or_refused(
    version: int, minor: object, metadata: object, cells: list[object]
) -> None:
    raw = {"nbformat": version, "nbformat_minor": minor, "metadata": metadata}
    raw |= {"cells": cells} if version == 4 else {"worksheets": [{"cells": cells}]}
    try:
        found = read_notebook("a.ipynb", json.dumps(raw))
    except InvalidInput:
        return
    assert nbformat.validator.isvalid(found.node)
    assert read_notebook("a.ipynb", notebook_text(found.node)).repairs == ()
