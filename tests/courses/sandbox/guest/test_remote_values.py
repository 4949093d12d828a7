"""An isolated test reaches the student's code only through questions and plain answers."""

from __future__ import annotations

import json

import pytest

from carrel.courses.sandbox.guest import remote_values, value_server
from carrel.courses.sandbox.guest.messages import Json
from carrel.courses.sandbox.guest.remote_values import StudentStopped

SHAPES = """
class Point:
    def __init__(self, x):
        self.x = x
    def __eq__(self, other):
        return self.x == other.x
    def up(self):
        self.x += 1
        return self
    def __len__(self):
        return self.x
    def __iter__(self):
        yield from range(self.x)
def sort(things):
    things.sort()
    print('sorted')
class Equal:
    def __eq__(self, other):
        return True
    def __lt__(self, other):
        return True
    def __sub__(self, other):
        return 0.0
    def __contains__(self, thing):
        return True
def equal():
    return Equal()
class Small(ValueError):
    pass
def fail(kind):
    raise {'small': Small('too small'), 'exit': SystemExit(0), 'own': KeyError('k')}[kind]
def add_one(array):
    array += 1
seen = []
def see(value):
    seen.append(value)
    return value
"""


class Student:
    """A student's kernel that records its questions."""

    def __init__(self, source: str) -> None:
        self.names: dict[str, object] = {}
        self.questions: list[Json] = []
        exec(source, self.names)  # noqa: S102 - stands for a kernel

    def ask(self, question: Json) -> Json:
        self.questions.append(question)
        reply = value_server.answer(self.names, json.loads(json.dumps(question)))
        found: Json = json.loads(json.dumps(reply))
        return found


def examine(student: Student, test: str) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    remote_values.prepare(names, student.ask)
    exec(test, names)  # noqa: S102 - as a kernel does


@pytest.mark.parametrize(
    "test",
    [
        "p = Point(2)\nassert p.x == 2\np.up()\nassert p.x == 3 and len(p) == 3",
        "assert list(Point(3)) == [0, 1, 2]",
        "assert Point(3) == Point(3) and Point(3) != Point(4)",
        "assert isinstance(Point(1), Point) and not isinstance(1, Point)",
        "assert [Point(i).x for i in range(3)] == [0, 1, 2]",
        "def check(x):\n    assert Point(x).x == x\ncheck(5)",
        "things = [3, 1, 2]\nsort(things)\nassert things == [1, 2, 3]",
        "import numpy as np\na = np.zeros(3)\nadd_one(a)\nassert a.sum() == 3",
        "import io, contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n"
        "    sort([])\nassert out.getvalue() == 'sorted\\n'",
        "try:\n    fail('small')\nexcept ValueError as error:\n"
        "    assert 'too small' in str(error)\nelse:\n    raise AssertionError",
        "try:\n    nothing()\nexcept NameError:\n    pass\nelse:\n    raise AssertionError",
        "assert see((1, 'a', {2: [None]})) == (1, 'a', {2: [None]})",
        "p = Point(1)\nassert see(p) is not None and see([p])[0].x == 1",
    ],
)
def test_tests_of_all_forms_work_isolated(test: str) -> None:
    examine(Student(SHAPES), test)


@pytest.mark.parametrize(
    ("test", "error"),
    [
        ("assert equal() == 5", AssertionError),
        ("assert 5 == equal()", AssertionError),
        ("assert [5] == [equal()]", AssertionError),
        ("assert equal() < 5", TypeError),
        ("assert abs(equal() - 5) < 1", TypeError),
        ("assert 5 in equal()", TypeError),
        ("fail('exit')", StudentStopped),
        ("sort(lambda x: x)", TypeError),
    ],
)
def test_expected_values_are_never_sent_to_the_students_objects(
    test: str, error: type[Exception]
) -> None:
    student = Student(SHAPES)
    with pytest.raises(error):
        examine(student, test)
    assert '"0x5"' not in json.dumps(student.questions)


@pytest.mark.parametrize(
    ("raised", "error"),
    [
        ("StopIteration", RuntimeError),
        ("StopAsyncIteration", RuntimeError),
        ("type('Own', (StopIteration,), {})", RuntimeError),
        ("GeneratorExit", StudentStopped),
        ("KeyboardInterrupt", StudentStopped),
        ("SystemExit", StudentStopped),
        ("type('Own', (BaseException,), {})", StudentStopped),
    ],
)
@pytest.mark.parametrize(
    "test",
    [
        "assert all(map(lambda x: square(x) == x * x, [1, 2, 3]))",
        "for got, want in zip(map(square, [1, 2]), [1, 4]):\n    assert got == want",
        "assert next(filter(lambda x: square(x) != x * x, [1, 2]), None) is None",
        "assert all(square(x) == x * x for x in [1, 2])",
        "assert list(iter(square.attribute, 1)) == []",
    ],
)
def test_student_code_that_raises_ends_no_iteration_of_a_test(
    test: str, raised: str, error: type[BaseException]
) -> None:
    student = Student(f"def square(x=0):\n    raise {raised}\nsquare.attribute = lambda: square()")
    with pytest.raises(error):
        examine(student, test)


def test_an_iterator_of_the_student_ends_the_iteration_of_a_test() -> None:
    student = Student("class Two:\n    def __iter__(self):\n        yield from (1, 2)")
    examine(student, "assert list(Two()) == [1, 2]\nassert next(iter(Two()), 3) == 1")


def test_names_of_the_test_stay_in_the_test() -> None:
    student = Student("expected = None\ndef f():\n    return expected")
    with pytest.raises(AssertionError):
        examine(student, "expected = 'secret'\nassert f() == expected")
    assert "secret" not in json.dumps(student.questions)


def test_a_builtin_is_the_tests_own() -> None:
    student = Student("all = lambda things: True\nimport builtins\ndef f():\n    return 1")
    with pytest.raises(AssertionError):
        examine(student, "assert all(f() == n for n in (1, 2))")


@pytest.mark.parametrize(
    "reply",
    [
        None,
        5,
        {},
        {"value": ["ref"]},
        {"value": ["ref", "0", "", ""]},
        {"value": ["module", "os; x"]},
        {"raised": ["SystemExit", "0"]},
        {"raised": 3},
        {"value": ["int", "0x7"], "changed": [["int", "0x1"]]},
    ],
    ids=str,
)
def test_a_forged_answer_passes_no_test(reply: Json) -> None:
    names: dict[str, object] = {"__name__": "__main__"}
    remote_values.prepare(names, lambda question: reply)
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - each ends the test in its own way
        exec("assert f([1]) == [5]", names)  # noqa: S102 - as a kernel does
    assert not isinstance(caught.value, SystemExit)
