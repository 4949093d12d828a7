"""A digest of code and data is the same in each process, and another one after a change."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence

CODE = """
import functools
import numpy as np
from carrel.extensions.stages.fingerprint import fingerprint
data, names, rate = np.arange(6.0), {"b", "a", "c"}, 0.5
table = {"x": [1, (2, 3)]}
class Model:
    size = 3
    def loss(self):
        return self.size
def helper(x):
    return x + rate
def start():
    return Model()
def step(state, values, number, scale=2):
    if values["kind"] in {"x", "y", "z"}:
        return [helper(each) for each in data], names, table
    return lambda: scale
print(fingerprint(start, functools.partial(step, number=1)))
"""


CHANGES = (
    ("x + rate", "x - rate"),
    (", 0.5", ", 1.5"),
    ("arange(6.0)", "arange(7.0)"),
    ("arange(6.0)", "arange(6)"),
    ("size = 3", "size = 4"),
    ("return self.size", "return -self.size"),
    ("scale=2", "scale=3"),
    ('"a", "c"', '"d", "c"'),
    ("(2, 3)", "(2, 4)"),
    ("number=1", "number=2"),
    ('"y", "z"', '"y", "w"'),
)
EACH = "import json, sys\nfor code in json.load(sys.stdin): exec(code, {'__name__': '__main__'})"


def digests(codes: Sequence[str]) -> Sequence[str]:
    """Return the digest of each code, in a process in which sets have an order of their own."""
    return subprocess.run(
        [sys.executable, "-P", "-c", EACH],
        input=json.dumps(codes), env={**os.environ, "PYTHONHASHSEED": "random"},
        capture_output=True, text=True, check=True,
    ).stdout.split()  # fmt: skip


def test_it_is_the_same_in_each_process_and_changes_with_code_and_data() -> None:
    changed = [CODE.replace(old, new) for old, new in CHANGES]
    codes = [CODE, "# a comment\n" + CODE, *changed]
    first = digests(codes)
    assert digests(codes) == first
    assert first[0] == first[1]
    assert len(set(first)) == 1 + len(set(changed)) == 1 + len(CHANGES)
