"""Global names in code, beside those that Python's own symbol table finds."""

from __future__ import annotations

import ast
import symtable
import sysconfig
from collections.abc import Iterable
from pathlib import Path

import pytest

from carrel.hub.sweeps.code_events import DeferredCode, Event, ImportedName, Mention
from carrel.hub.sweeps.code_walker import code_events

STANDARD_LIBRARY = Path(sysconfig.get_paths()["stdlib"])
MODULES = sorted(each for each in STANDARD_LIBRARY.glob("*.py") if each.stat().st_size < 60_000)
CASES = {
    "class and inner function": "class A:\n    x = 1\n    def m(self): return x",
    "class reads before it binds": "class A:\n    x = x",
    "comprehension in a class": "class A:\n    y = [x for z in range(3)]",
    "walrus in a comprehension": "def f():\n    [y := x for x in z]\n    return y",
    "walrus in a comprehension of the cell": "[y := x for x in z]",
    "global of an inner function": "def f():\n x = 1\n def g():\n  global x\n  x = 2",
    "nonlocal": "def f():\n x = 1\n def g():\n  nonlocal x\n  x += y\n return g",
    "bases in brackets": "class A(B[c], metaclass=d): pass",
    "annotations": "def f(a: b, *c: d, **e: g) -> h:\n    i: j = k\n    l: m",
    "annotation in parentheses": "def f():\n    (x): int\n    return x",
    "private names": "class A:\n    def m(self): return __x",
    "patterns": "match a:\n    case {'k': b, **c}: d\n    case [e, *f] | g(h=e): i",
    "patterns in a function": "def f(a):\n    match a:\n        case {'k': b, **c}: return b, c",
    "errors": "try: a\nexcept b as c: d\nelse: e\nfinally: g",
    "errors in a function": "def f():\n    try: a\n    except b as c: return c",
    "star": "a, *b = c\ndel d.e, f[g]",
    "lambda": "f = lambda a, b=c, *d, e=g, **h: (a, b, d, e, h, i)",
    "generator": "(a for b in c if d for e in b if g)",
    "imports in a function": "def f():\n import a.b, c as d\n from e import g\n return a, d, g",
    "async": "async def f():\n    async with a as b:\n        return [c async for c in b]",
    "decorators": "@a(b)\nclass C:\n    @d\n    def e(self, f=g): pass",
    "loop": "def f():\n    for a in b:\n        with c as d:\n            print(a, d)",
    "text": "x = f'{a!r:{b}} {c}'",
}


def walked(events: Iterable[Event]) -> set[str]:
    found: set[str] = set()
    for event in events:
        match event:
            case Mention():
                found |= set() if event.in_text else {event.root}
            case ImportedName():
                found.add(event.name)
            case DeferredCode():
                found |= walked(event.events) | {event.name}
    return found - {""}


def pythons(table: symtable.SymbolTable) -> set[str]:
    """Return the global names of a table and those in it."""
    found = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if (table.get_type() == "module" or symbol.is_global())
        and (symbol.is_referenced() or symbol.is_assigned() or symbol.is_imported())
    }
    for child in table.get_children():
        found |= pythons(child)
    # The names of comprehensions, and what a class has for super().
    return {name for name in found if not name.startswith(".") and name != "__class__"}


@pytest.mark.parametrize("case", CASES)
def test_global_names_are_those_of_the_symbol_table(case: str) -> None:
    source = CASES[case]
    found = walked(code_events(ast.parse(source)))
    expected = pythons(symtable.symtable(source, case, "exec"))
    # A class may read a global name that it binds later: it counts in any case.
    assert found - {"x"} == expected - {"x"}
    assert found >= expected


def test_no_global_name_of_real_code_is_missed() -> None:
    assert len(MODULES) > 100
    missed, more, all_names = {}, 0, 0
    for path in MODULES:
        source = path.read_text(encoding="utf-8")
        found = walked(code_events(ast.parse(source)))
        expected = pythons(symtable.symtable(source, path.name, "exec"))
        if path.name == "poplib.py":  # symtable takes a function named "top" for the module
            expected -= {"self", "which", "howmuch"}
        if expected - found:
            missed[path.name] = expected - found
        more += len(found - expected)
        all_names += len(expected)
    assert missed == {}
    assert more < all_names / 20
