"""Commands run without a shell: what only a shell understands is recognized."""

from __future__ import annotations

import pytest

from carrel.hub.client.shell_syntax import shell_syntax, unquoted_operator


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["cat", "a", "|", "wc"], "|"),
        (["python", "a.py", ">", "log"], ">"),
        (["a", "&&", "b"], "&&"),
        (["python train.py | tee log"], "python train.py | tee log"),
        (["python", "train.py"], ""),
        (["find", ".", "-exec", "rm", "{}", ";"], ""),
        (["grep", "a|b", "x y"], ""),
        (["./train"], ""),
    ],
)
def test_operators_are_found_among_words(words: list[str], found: str) -> None:
    assert shell_syntax(words) == found


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("cat a | wc", "|"),
        ("python a.py > log", ">"),
        ("a && b", "&&"),
        ("grep '|' a", ""),
        ('grep "a | b" c', ""),
        (r"grep \| a", ""),
        ("cut --delimiter='|' a", ""),
        ("sh -c 'a | b && c > d'", ""),
        ("python -c print(1)", ""),
    ],
)
def test_unquoted_operators_are_found_in_a_line(line: str, found: str) -> None:
    assert unquoted_operator(line) == found
