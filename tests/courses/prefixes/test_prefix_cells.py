"""Which cells of a released notebook may run once for all members of a course."""

from __future__ import annotations

import json

import pytest

from carrel.courses.prefixes.prefix_cells import (
    PrefixPlan,
    notebook_digest,
    prefix_notebook,
    prefix_plan,
)

from ..prefix_notebooks import ANSWER, TEST, text

SETUP = "import numpy as np\nimport pandas as pd\nimport matplotlib.pyplot as plt\nimport os"


def plan(*cells: str | tuple[str, dict[str, object]]) -> PrefixPlan:
    return prefix_plan("ps1.ipynb", text(*cells))


def numbers(found: PrefixPlan) -> list[int]:
    return [cell.number for cell in found.cells]


@pytest.mark.parametrize(
    ("next_cell", "why"),
    [
        (("x = 1", ANSWER), "cell 3 is for students to edit"),
        (("assert True", TEST), "cell 3 is a test"),
        (("lr = 0.1", {"tags": ["parameters"]}), "cell 3 has the tag parameters"),
        (("1 / 0", {"tags": ["raises-exception"]}), "cell 3 has the tag raises-exception"),
        ("frame.to_csv('out.csv')", "cell 3 writes files"),
        ("import time\nnow = time.time()", "cell 3 reads the clock"),
        ("x = np.random.rand()", "cell 3 draws random numbers without a seed"),
        ("import helpers\nhelpers.prepare()", "cell 3 uses helpers.prepare, which is not known"),
        ("home = os.environ['HOME']", "cell 3 uses os.environ, which may differ"),
        ("import glob\nfiles = glob.glob('*.csv')", "cell 3 uses glob, which may differ"),
        ("from pathlib import Path\np = Path('a').exists()", "cell 3 uses exists"),
        ("frame = pd.read_csv('/home/grace/a.csv')", "cell 3 names the place /home/grace/a.csv"),
        ("frame = pd.read_csv('../a.csv')", "cell 3 names the place ../a.csv"),
        ("key = hash('a')", "cell 3 uses hash(), which differs between processes"),
        ("def style():\n    plt.style.use('ggplot')", "cell 3 defines code that calls"),
        ("use = plt.style.use", "cell 3 passes matplotlib.pyplot.style.use on"),
        ("from numpy import *", "cell 3 imports all names of numpy"),
        ("import abc\nabc.ABC.register(int)", "cell 3 uses register, which may keep objects"),
        ("setattr(frame, 'twice', 3)", "cell 3 uses setattr"),
        ("from IPython.display import display\ndisplay(1, display_id=True)", "cell 3 shows an"),
    ],
)
def test_a_prefix_ends_before_a_cell_that_may_differ(
    next_cell: str | tuple[str, dict[str, object]], why: str
) -> None:
    found = plan(SETUP, "frame = pd.read_csv('data.csv')\nframe.head()", next_cell, "y = 1")
    assert (numbers(found), [cell.runs for cell in found.cells]) == ([1, 2], ["", ""])
    assert found.ends.startswith(why)


@pytest.mark.parametrize(
    ("cell", "why"),
    [
        ("%matplotlib inline", "uses %matplotlib"),
        ("plt.rcParams['figure.figsize'] = (3, 3)", "changes matplotlib.pyplot.rcParams"),
        ("plt.style.use('ggplot')", "calls matplotlib.pyplot.style.use"),
        (
            "from matplotlib import rcParams\nrcParams.update({})",
            "calls matplotlib.rcParams.update",
        ),
        ("import warnings\nwarnings.filterwarnings('ignore')", "calls warnings.filterwarnings"),
        ("pd.options.display.max_rows = 5", "changes pandas.options.display.max_rows"),
        ("pd.set_option('display.max_rows', 5)", "calls pandas.set_option"),
        ("_ = np.seterr(all='ignore')", "calls numpy.seterr"),
        ("pd.DataFrame.twice = 2", "changes pandas.DataFrame.twice"),
        ("x = 1\ndel x", "deletes x"),
        ("import sklearn\nsklearn.show_versions()", "calls sklearn.show_versions, whose result"),
    ],
)
def test_a_cell_whose_effects_are_not_restored_runs_in_each_job(cell: str, why: str) -> None:
    found = plan(SETUP, cell, "x = 2")
    assert numbers(found) == [1, 2, 3]
    assert [bool(each.runs) for each in found.cells] == [False, True, False]
    assert found.cells[1].runs.startswith(why)


def test_plain_given_cells_are_restored() -> None:
    found = plan(
        SETUP,
        "np.random.seed(0)\nX = np.random.rand(3)\nnp.random.shuffle(X)\nX = np.append(X, 1)",
        "class Model:\n    def __init__(self):\n        self.x = 1\nmodel = Model()\nmodel.x = 2",
        "settings = {'a': []}\nsettings.update(b=1)\nsettings['a'].append(1)",
        "plt.plot(X)\nplt.title('X')\nplt.gca().grid()\nplt.show()",
        "%%time\ntotal = sum(range(9))",
    )
    assert ([cell.runs for cell in found.cells], found.ends) == ([""] * 6, "")


def test_the_data_of_the_course_may_be_read() -> None:
    found = plan(SETUP, "frame = pd.read_csv(os.environ['CARREL_COURSE_DATA'] + '/a.csv')")
    assert (numbers(found), found.data) == ([1, 2], True)
    assert not plan(SETUP).data


def test_a_notebook_in_another_language_has_no_prefix() -> None:
    document = json.loads(text("x <- 1")) | {"metadata": {"language_info": {"name": "R"}}}
    found = prefix_plan("r.ipynb", json.dumps(document))
    assert (found.cells, found.restorable) == ((), False)


def test_the_computation_runs_the_cells_of_the_prefix_alone() -> None:
    whole = text(SETUP, "x = 1", ("y = 2", ANSWER))
    made = prefix_notebook("ps1.ipynb", whole, prefix_plan("ps1.ipynb", whole))
    assert len(json.loads(made)["cells"]) == 3
    assert notebook_digest("a", made, 3) == notebook_digest("a", whole, 3)
    changed = text(SETUP, "x = 1 ", ("y = 2", ANSWER))
    assert notebook_digest("a", changed, 3) != notebook_digest("a", whole, 3)
    tagged = text(SETUP, ("x = 1", {"tags": ["carrel-share"]}), ("y = 2", ANSWER))
    assert notebook_digest("a", tagged, 3) != notebook_digest("a", whole, 3)
