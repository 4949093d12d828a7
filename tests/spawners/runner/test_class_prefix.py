"""Jobs of a class begin with cells that ran once, each with a copy of its own."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from nbformat import NotebookNode

from carrel.courses.prefixes import attempt_files
from carrel.courses.prefixes.attempt_files import PrefixHeader
from carrel.hub.attempts.journal import read_journal
from carrel.hub.interfaces.backend import LaunchOrder

from ..attempts import wait_for_end
from ..conftest import Desk
from ..notebooks import notebook, printed, read, statuses

GIVEN = (
    "import random, time\nimport decimal\nrandom.seed(3)",
    "time.sleep(0.3)\n"
    "import numpy as np\nimport pandas as pd\n"
    "table = pd.read_csv('data.csv')\n"
    "print('loaded', len(table))",
    "settings = {'steps': [1, 2]}\nalias = settings['steps']\n_hidden = 5\n"
    "array = np.arange(6.0)\nview = array[2:4]\n"
    "column = table['b']\n"
    "class Model:\n    seen = []\n    def weight(self):\n        return settings['steps'][0]\n"
    "model = Model()\n"
    "def draw():\n    return random.random()\n"
    "draw()\n"
    "time.sleep(0.2)\nlen(table)",
)
ANSWER = (
    "alias.append(99)\nmodel.seen.append(1)\nview[0] = -1\n"
    "print(settings, array, Model.seen, model.weight(), isinstance(model, Model), _hidden)\n"
    "print(_, Out, In[2][:4], draw(), list(table.columns))\n"
    "column.iloc[0] = 7\n"
    "print(table['b'].tolist(), decimal.Decimal(1), get_ipython().execution_count)"
)
OTHER = "print(settings, array, Model.seen, _)"


def started(desk: Desk, book: NotebookNode, *, rows: str = "a,b\n1,2\n3,4\n") -> LaunchOrder:
    """Return the order of a job in a working folder with the released file."""
    order = desk.order(book)
    home = desk.folder / f"home-{order.request_id}"
    home.mkdir()
    (home / "data.csv").write_text(rows)
    return replace(order, home=home)


def run(desk: Desk, order: LaunchOrder) -> int | None:
    return wait_for_end(desk, order, desk.backend.start(order))


def computed(desk: Desk, *given: str) -> tuple[Path, PrefixHeader | None, str]:
    """Let the course run the given cells; return the kept prefix and the log of the job."""
    order = started(desk, notebook(*given))
    order = replace(order, job=replace(order.job, computes_prefix=True))
    assert run(desk, order) == 0
    kept = desk.folder / "prefixes" / order.request_id
    return kept, attempt_files.keep(order.folder, kept), log(order)


def with_prefix(desk: Desk, kept: Path, *cells: str, **more: str) -> LaunchOrder:
    order = started(desk, notebook(*cells), **more)
    attempt_files.offer(kept, order.folder)
    assert run(desk, order) == 0
    return order


def log(order: LaunchOrder) -> str:
    return (order.folder / "log.txt").read_text()


def result(order: LaunchOrder) -> str:
    executed = read(order.folder / "output.ipynb")
    assert set(statuses(executed)) == {"completed"}
    return printed(executed)


def counts(order: LaunchOrder) -> list[int | None]:
    cells = read(order.folder / "output.ipynb").cells
    return [cell.execution_count for cell in cells if "outputs" in cell]


def test_students_begin_with_the_prefix_and_never_see_each_others_changes(desk: Desk) -> None:
    kept, header, text = computed(desk, *GIVEN)
    assert header is not None, text
    changed = (f"{GIVEN[0]} # changed", *GIVEN[1:])
    plain = with_prefix(desk, kept, *changed, ANSWER)
    first = with_prefix(desk, kept, *GIVEN, ANSWER)
    second = with_prefix(desk, kept, *GIVEN, OTHER)

    assert "come from the prefix of the course" in log(first), log(first)
    assert (result(first), counts(first)) == (result(plain), counts(plain))
    # What the first student changed in place is as it was.
    assert "come from the prefix of the course" in log(second)
    assert "{'steps': [1, 2]} [0. 1. 2. 3. 4. 5.] [] 2" in result(second)
    marks = [cell.metadata.get("carrel") for cell in read(first.folder / "output.ipynb").cells]
    origin = {"prefix": kept.name}
    assert marks == [None, *([origin] * 3), None]
    journal = read_journal(first.folder / "events.jsonl")
    assert [event.data["cells"] for event in journal if event.kind == "prefix"] == [3]
    assert header.seconds > 0.5

    refused = "not used: the notebook does not begin with the cells of the release"
    assert refused in log(plain)
