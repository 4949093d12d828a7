"""What shares memory does so after it was pickled, or is not pickled at all."""

from __future__ import annotations

import io
import pickle
import sys
from types import ModuleType
from typing import Any

import numpy as np
import pandas as pd
import pytest

from carrel.courses.prefixes.shared_objects import (
    NotSeparable,
    SharedMemory,
    is_mutable,
    module_objects,
)


def restored(value: Any) -> Any:
    """Pickle a value as a prefix is pickled, and load it."""
    memory = SharedMemory()

    class First(pickle.Pickler):
        def persistent_id(self, found: object) -> None:
            memory.add(found)

    class Second(pickle.Pickler):
        def reducer_override(self, found: object) -> Any:
            made = memory.reduced(found)
            return NotImplemented if made is None else made

    First(io.BytesIO()).dump(value)
    memory.check()
    written = io.BytesIO()
    Second(written, protocol=pickle.HIGHEST_PROTOCOL).dump(value)
    return pickle.loads(written.getvalue())  # noqa: S301  # written above


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_stay_views(order: Any) -> None:
    table = np.array(np.arange(12.0).reshape(3, 4), order=order)
    value = {"table": table, "x": table[:, :-1], "y": table[:, -1], "r": table[::-1], "t": table.T}
    found = restored(value)
    assert all((found[name] == value[name]).all() for name in value)
    found["y"][0] = 99.0
    assert (found["table"][0, 3], found["r"][2, 3], found["t"][3, 0]) == (99.0, 99.0, 99.0)
    assert table[0, 3] == 3.0


def test_tables_of_pandas_that_copy_on_write_stay_apart() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    found = restored({"table": table, "column": table["a"]})
    found["column"].iloc[0] = 9.0
    assert found["table"]["a"].tolist() == [1.0, 2.0]


def test_what_cannot_be_kept_is_not_saved() -> None:
    table = pd.DataFrame({"a": [1.0, 2.0], "b": [3.0, 4.0]})
    objects = np.array([{}, []], dtype=object)
    for value in ([table, table.to_numpy()], [objects, objects[:1]]):
        with pytest.raises(NotSeparable, match="two variables share memory"):
            restored(value)


class Strict:
    """As pydantic has them: no attribute can be asked for."""

    __slots__ = ()

    def __getattr__(self, name: str) -> object:
        raise RuntimeError(name)


def test_objects_that_a_module_holds_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    helpers = ModuleType("helpers")
    settings, values = {"steps": [1]}, [2]
    helpers.__dict__.update(settings=settings, Config=type("Config", (), {"values": values}))
    helpers.__dict__["strict"] = Strict()
    helpers.__file__ = "/srv/course/helpers.py"
    monkeypatch.setitem(sys.modules, "helpers", helpers)
    found = module_objects(set(), ("/usr/",))
    names = {found[id(each)][0] for each in (settings, settings["steps"], values)}
    assert names == {"helpers"}
    own: list[int] = []
    assert (id(own) in found, is_mutable(own), is_mutable("text")) == (False, True, False)


def test_an_object_that_a_module_makes_at_each_look_is_not_mistaken_for_a_variable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its address is free again when the look is over, and the next variable may get it."""

    class Lazy:
        @property
        def __dict__(self) -> dict[str, list[int]]:  # type: ignore[override]
            return {"made": []}

    made = ModuleType("made")
    made.__dict__["many"] = [Lazy() for _ in range(50)]
    monkeypatch.setitem(sys.modules, "made", made)
    found = module_objects(set(), ("/usr/",))
    own: list[list[int]] = [[] for _ in range(1000)]
    assert not [each for each in own if id(each) in found]
