"""Strategies for small notebooks in which trials differ in indirect ways, and for spaces.

A notebook consists of stories, whose steps fall into its cells at random: something that depends on
a parameter, on the clock, on chance or on a file is defined, kept under another name or inside of
an object, and used. Other statements change and alias lists and dictionaries in between.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from hypothesis import strategies as st

from carrel.hub.sweeps.space import GridSpace, ListSpace, Space

PARAMETERS = ("lr", "deep", "flag")
DEFAULTS = "lr = 1\ndeep = 2\nflag = 0"
BEGIN = "import random, time\na, b, c = 1, 2, 3\nxs, ys, fs, d = [1], [2], [], {}\nenv = {}"

VALUES = (
    "{p}", "{p} + a", "[q * {p} for q in xs][0]", "sum(q for q in [a, {p}])", "f'{{{p}}}'",
    "(lambda: {p})()", "(lambda q=3: q + {p})()", "eval('{p}')", "globals()['{p}']", "env['{p}']",
    "vars()['{p}']", "random.randint(0, 99)", "rnd{n}()", "time.time()", "len(open('x', 'w').name)",
    "getattr(time, 'time')()", "(a, b)[bool({p})]", "{{'k': {p}}}['k']", "(w{n} := {p})",
)  # fmt: skip
"""What depends on a parameter or on the trial, mostly in the end."""
PLAIN = ("a + 1", "len(xs)", "max(xs, default=0)", "[{p} for {p} in [b]][0]", "(lambda {p}: a)(1)")
"""What does not."""

DEFINITIONS = (
    "def f{n}():\n    return {v}",
    "f{n} = lambda: {v}",
    "def f{n}(q={v}):\n    return q",
    "def f{n}():\n    def inner():\n        return {v}\n    return inner()",
    "def f{n}():\n    return [r for r in (lambda: {v},)][0]()",
    "def f{n}():\n    global a\n    a = 5\n    return {v}",
    "def f{n}():\n    yield {v}\nf{n} = (lambda f: lambda: next(f()))(f{n})",
    "def same{n}(q):\n    return q\n@same{n}\ndef f{n}():\n    return {v}",
    "class K{n}:\n    def m(self):\n        return {v}\ndef f{n}():\n    return K{n}().m()",
    "class K{n}:\n    m = staticmethod(lambda: {v})\ndef f{n}():\n    return K{n}.m()",
    "class K{n}:\n    def __len__(self):\n        return int({v})\n"
    "def f{n}():\n    return len(K{n}())",
    "class K{n}:\n    def m(self):\n        return {v}\nclass L{n}(K{n}):\n    pass\n"
    "def f{n}():\n    return L{n}().m()",
    "def f{n}():\n    import random as r\n    return r.randint(0, 99)",
    "def f{n}():\n    from time import time\n    return time()",
    "def f{n}():\n    {p} = 4\n    return {p}",
    "def f{n}({p}=3):\n    return {p} + a",
    "async def co{n}():\n    return {v}\n"
    "def f{n}():\n    try:\n        co{n}().send(None)\n    except StopIteration as end:\n"
    "        return end.value",
)
"""Definitions of a function f that returns a value."""
CAPTURES: Sequence[tuple[str, str]] = (
    ("", "f{n}()"),
    ("h{n} = f{n}", "h{n}()"),
    ("fs.append(f{n})", "[q() for q in fs][-1]"),
    ("d['f{n}'] = f{n}", "d['f{n}']()"),
    ("h{n} = (f{n}() for q in [1])", "next(h{n}, 0)"),
    ("h{n} = iter(f{n}, None)", "next(h{n})"),
    ("h{n} = lambda: f{n}()", "h{n}()"),
    ("h{n} = lambda q=f{n}: q()", "h{n}()"),
    ("def h{n}():\n    return f{n}()", "h{n}()"),
    ("class O{n}:\n    def m(self):\n        return f{n}()\no{n} = O{n}()", "o{n}.m()"),
    ("class O{n}:\n    m = f{n}", "O{n}.m()"),
    ("class O{n}:\n    pass\no{n} = O{n}()\no{n}.m = f{n}", "o{n}.m()"),
    ("for h{n} in [f{n}]:\n    pass", "h{n}()"),
    ("h{n} = sorted([1], key=lambda q: f{n} and 1) and f{n}", "h{n}()"),
    ("env['f'] = globals()", "env['f']['f{n}']()"),
)
"""How a function is kept, and how it is called then."""
OVERWRITES = (
    "{p} = {x}", "for {p} in [{x}]:\n    pass", "del {p}\n{p} = {x}", "[{p} := q for q in [{x}]]",
    "def {p}():\n    return 1", "import time as {p}", "class {p}:\n    pass", "{p} += {x}",
    "def w{n}():\n    global {p}\n    {p} = {x}\nw{n}()", "globals()['{p}'] = {x}",
    "{p}: int = {x}",
    "with open('x') as {p}:\n    pass", "from math import *", "exec('{p} = 8')",
    "try:\n    1 / 0\nexcept Exception as {p}:\n    pass\n{p} = {x}", "env.update(locals())",
    "match {x}:\n    case {p}:\n        pass", "def w{n}(q={x}):\n    pass",
)  # fmt: skip
SEEDS = (
    "random.seed(5)",
    "random.seed(a)",
    "if a > 100:\n    random.seed(5)",
    "random.seed()",
    "s{n} = None\nrandom.seed(s{n})",
    "s{n} = a\nrandom.seed(s{n})",
    "def s{n}(q=None):\n    random.seed(q)\ns{n}()",
    "def s{n}(q):\n    random.seed(q)\ns{n}(None)",
    "def s{n}(q):\n    random.seed(q)\ns{n}(3)",
    "d['s{n}'] = d.get('s{n}')\nrandom.seed(d['s{n}'])",
    "random.seed({p})",
    "def s{n}():\n    random.seed(5)\ns{n}()",
    "def s{n}():\n    if a < 100:\n        return\n    random.seed(5)\ns{n}()",
    "def s{n}():\n    random.seed(5)\n    yield\ns{n}()",
    "def s{n}():\n    random.seed(5)",
    "a > 100 and random.seed(5)",
    "s{n} = lambda: random.seed(5)\ns{n}()",
    "from random import seed\nseed(3)",
    "for q in []:\n    random.seed(5)",
)
DRAWS = (
    "v{n} = random.randint(0, 99)",
    "rnd{n} = random.randint\nv{n} = rnd{n}(0, 99)",
    "from random import randint as r{n}\nv{n} = r{n}(0, 99)",
    "import random as m{n}\nv{n} = m{n}.randint(0, 99)",
    "m{n} = random\nv{n} = m{n}.randint(0, 99)",
    "def r{n}():\n    return random.randint(0, 99)\nv{n} = r{n}()",
    "v{n} = list(map(random.randint, [0], [99]))[0]",
)
HOOKS = (
    "class B{n}:\n    def __init_subclass__(cls):\n        xs.append({v})\n"
    "class C{n}(B{n}):\n    pass",
    "class M{n}(type):\n    def __new__(cls, *q):\n        xs.append({v})\n"
    "        return type.__new__(cls, *q)\nclass C{n}(metaclass=M{n}):\n    pass",
    "def run{n}(fn):\n    xs.append(fn())\n    return fn\n@run{n}\ndef C{n}():\n    return {v}",
    "class C{n}:\n    xs.append({v})",
    "class C{n}:\n    q = {v}",
    "class D{n}:\n    def __set_name__(self, owner, name):\n        xs.append({v})\n"
    "class C{n}:\n    q = D{n}()",
)
"""Definitions that run code at once."""
PASTIMES = (
    "xs.append(a)", "xs = ys", "xs = list(ys)", "ys = [xs[0]]", "d['l'] = xs", "a = b + len(xs)",
    "d.get('l', xs).append(b)", "b, c = c, b", "for i in range(3):\n    ys.append(i)", "c += 1",
    "while len(xs) > 3:\n    xs.pop()", "print(a, xs, d.get('l'))", "del c\nc = 9", "xs[0] = b",
    "if a > 3:\n    ys.clear()\n    ys.append(4)", "%time a = a + 1", "fs.append(lambda: a)",
)  # fmt: skip
"""What only changes plain data."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RandomSweep:
    cells: tuple[str, ...]
    parameters_at: int
    space: Space

    @property
    def text(self) -> str:
        """The text of the notebook."""
        cells = [
            {
                "cell_type": "code",
                "source": source,
                "metadata": {"tags": ["parameters"]} if index == self.parameters_at else {},
            }
            for index, source in enumerate(self.cells)
        ]
        return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5})


@st.composite
def stories(draw: st.DrawFn, number: int) -> list[str]:
    """Return the steps of one story; its names end with its number."""
    kind = draw(st.sampled_from(["call", "call", "late", "overwrite", "chance", "hook", "value"]))
    names = {"n": number, "p": draw(st.sampled_from(PARAMETERS))}
    value = draw(st.sampled_from([*VALUES, *VALUES[:6], *PLAIN])).format(**names)
    steps: list[str]
    match kind:
        case "call":
            capture, call = draw(st.sampled_from(CAPTURES))
            definition = draw(st.sampled_from(DEFINITIONS))
            steps = [definition, capture, f"v{number} = {call}\nprint(v{number})"]
        case "late":
            capture, call = draw(st.sampled_from(CAPTURES))
            steps = [
                f"def f{number}():\n    return g{number}()",
                capture,
                draw(st.sampled_from(DEFINITIONS)).replace("f{n}", "g{n}"),
                f"v{number} = {call}\nprint(v{number})",
            ]
        case "overwrite":
            steps = [draw(st.sampled_from(OVERWRITES)), "print({p} if str({p}).isdigit() else 0)"]
            names["x"] = draw(st.sampled_from(["7", "a", value]))
        case "chance":
            seeds = draw(st.lists(st.sampled_from(SEEDS), max_size=2))
            steps = [*seeds, draw(st.sampled_from(DRAWS))]
        case "hook":
            steps = [draw(st.sampled_from(HOOKS))]
        case _:
            steps = [f"v{number} = {{v}}", f"xs.append(v{number})"]
    return [step.format(v=value, **names) for step in steps]


@st.composite
def cells(draw: st.DrawFn) -> list[str]:
    count = draw(st.integers(2, 6))
    lines: list[list[str]] = [[] for _ in range(count)]
    place = st.integers(0, count - 1)
    told = [draw(stories(number)) for number in range(draw(st.integers(1, 3)))]
    told += [[each] for each in draw(st.lists(st.sampled_from(PASTIMES), max_size=3))]
    for steps in told:
        for step, at in zip(steps, sorted(draw(place) for _ in steps), strict=True):
            if step:
                lines[at].append(step)
    return ["\n".join(each) for each in lines]


def spaces() -> st.SearchStrategy[Space]:
    values = st.lists(st.integers(0, 4), min_size=1, max_size=2, unique=True).map(tuple)
    grids = st.dictionaries(st.sampled_from(PARAMETERS), values, min_size=1).map(GridSpace)
    value = st.one_of(st.integers(0, 2), st.none())
    trial = st.dictionaries(st.sampled_from(PARAMETERS), value)
    lists = st.lists(trial, min_size=2, max_size=4).map(lambda each: ListSpace(tuple(each)))
    return st.one_of(grids, lists)


@st.composite
def sweeps(draw: st.DrawFn) -> RandomSweep:
    found = [BEGIN, *draw(cells())]
    at = draw(st.sampled_from([0, 0, 1, 1, 2, 3]))
    found.insert(at, DEFAULTS)
    return RandomSweep(cells=tuple(found), parameters_at=at, space=draw(spaces()))
