"""What the analysis finds in single cells: uses of parameters, obstacles, names."""

from __future__ import annotations

import textwrap
from dataclasses import replace

import pytest

from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import NO_SHARE_TAG, SHARE_TAG

from .notebooks import analysed, last_cell, notebook

USES = {
    "read": ("x = lr", "uses lr"),
    "text": ("x = f'{lr}'", "uses lr"),
    "assigned": ("lr = 3", "assigns lr"),
    "deleted": ("del lr", "deletes lr"),
    "loop": ("for lr in xs: pass", "assigns lr"),
    "imported": ("import os as lr", "defines lr"),
    "defined": ("def lr(): pass", "defines lr"),
    "default of an argument": ("def f(lr=lr): pass", "uses lr"),
    "class body": ("class A:\n    lr = lr", "uses lr"),
    "called": ("def f(): return lr\nf()", "uses f, whose code uses lr"),
    "through": (
        "def f(): return g()\ndef g(): return lr\nf()",
        "uses f, whose code uses lr through g",
    ),
    "alias": ("def f(): return lr\ng = f", "uses f, whose code uses lr"),
    "method": ("class A:\n    def m(self): return lr\nA()", "uses A, whose code uses lr"),
    "base class": (
        "class A:\n    def m(self): return lr\nclass B(A): pass\nB()",
        "uses B, whose code uses lr through A",
    ),
    "compiled": ("import numba\n@numba.njit('f8()')\ndef f(): return lr", "uses f, whose code"),
    "decorator": ("@run\ndef f(): return lr", "uses f, whose code uses lr"),
    "lambda": ("xs.sort(key=lambda x: lr)", "uses lr"),
    "generator": ("g = (lr for x in xs)", "uses lr"),
    "inner function": ("def f():\n    def g(): return lr\n    return g\nf()", "uses f, whose code"),
    "global": ("def f():\n    global lr\n    lr = 1\nf()", "uses f, whose code assigns lr"),
    "query": ("df.query('x > @lr')", "uses lr"),
    "formula": ("smf.ols('y ~ x + lr', df)", "uses lr"),
    "text of a call": ("find('lr x')", "passes a text with the word lr to find"),
    "magic": ("%env RATE=1 lr", "uses lr in %env"),
    "star": ("from math import *", "imports all names of math, which may replace lr"),
    "pattern": ("match x:\n    case {'a': lr}: pass", "assigns lr"),
    "walrus": ("[lr := x for x in xs]", "assigns lr"),
}


@pytest.mark.parametrize("case", USES)
def test_a_use_of_a_parameter_is_found(case: str) -> None:
    source, why = USES[case]
    assert last_cell(source).parameters["lr"].why.startswith(why)


@pytest.mark.parametrize(
    "source",
    [
        "def f(lr): return lr\nf(3)",
        "def f():\n    lr = 3\n    return lr\nf()",
        "def f():\n    for lr in xs: pass\nf()",
        "def f():\n    import os as lr\n    return lr.sep\nf()",
        "x = [lr for lr in xs]",
        "x = (lambda lr: lr)(3)",
        "def f():\n    lr = 1\n    def g(): return lr\n    return g()\nf()",
        "def f(): return lr",
        "class A:\n    def m(self): return lr",
        "class A(nn.Module):\n    def m(self): return lr",
        "@functools.cache\ndef f(): return lr",
        "x.lr = 1\nx['lr'] = 2\nprint('lr')\ng(lr=3)",
        "# lr\n'lr'",
        "def f(x: A): pass",
    ],
)
def test_what_only_looks_like_a_use_is_none(source: str) -> None:
    begin = "import functools\nfrom torch import nn\nclass A:\n    def m(self): return lr"
    assert last_cell(begin, source).parameters == {}


def test_the_line_of_a_use_is_that_of_the_cell() -> None:
    train = "def train():\n    return lr"
    assert last_cell(train, "x = 1\n\ny = train()").parameters["lr"].line == 3


OBSTACLES = {
    "df.to_csv('a.csv')": "writes files (df.to_csv)",
    "import numpy as np\nnp.save('a', x)": "writes files (np.save)",
    "with open('a', 'w') as f:\n    pass": "writes files (open)",
    "open('a', mode)": "writes files (open)",
    "open(*names)": "writes files (open)",
    "open('a', **options)": "writes files (open)",
    "from torch.utils.data import DataLoader\nDataLoader(x, **options)": "draws random numbers",
    "from torch.utils.data import DataLoader\nDataLoader(x, 8, True)": "draws random numbers",
    "import numpy as np\nx = np.load('a.npz')": "opens a file and leaves it open (np.load)",
    "import numpy as np\nx = np.load('a.npy', mmap_mode='r+')": "writes files (np.load)",
    "f = open('a')": "opens a file and leaves it open (open)",
    "from pathlib import Path\nPath('a').rename('b')": "writes files (rename)",
    "import random\nx = random.random()": "draws random numbers without a seed (random.random)",
    "import numpy as np\nrng = np.random.default_rng()": "draws random numbers without a seed",
    "from sklearn.model_selection import train_test_split as s\ns(x)": "draws random numbers",
    "from sklearn.cluster import KMeans\nKMeans(3, random_state=None)": "draws random numbers",
    "x = df.sample(3)": "draws random numbers without a seed (df.sample)",
    "import torch\nx = torch.randn(3)": "draws random numbers without a seed (torch.randn)",
    "from torch import nn\nx = nn.Linear(1, 2)": "draws random numbers without a seed (nn.Linear)",
    "import pandas as pd\nt = pd.Timestamp('now')": "reads the clock (pd.Timestamp)",
    "x = df.resample(100)": "draws random numbers without a seed (df.resample)",
    "weights.data.uniform_(-1, 1)": "draws random numbers without a seed (weights.data.uniform_)",
    "import polars as pl\nx = table.shuffle()": "draws random numbers without a seed",
    "import networkx as nx\ng = nx.gnp_random_graph(9, 0.1)": "draws random numbers without a seed",
    "import numpy as np\nnp.random.seed(0)\nimport seaborn as sns\nsns.barplot(df)": "draws random",
    "import tensorflow as tf\ntf.random.set_seed(0)\nm = tf.keras.layers.Dense(1)": "draws random",
    "import keras\nc = keras.callbacks.ModelCheckpoint('a')": "writes files",
    "pq.write_table(table, 'a')": "writes files (pq.write_table)",
    "from numba import njit\nimport numpy as np\nnp.random.seed(0)\n"
    "def f(): return np.random.rand()\nf()": "uses f, whose code draws random numbers",
    "import time\nt = time.time()": "reads the clock (time.time)",
    "from datetime import datetime\nt = datetime.now()": "reads the clock (datetime.now)",
    "import subprocess\nsubprocess.run(['ls'])": "starts or ends a process or thread",
    "!ls": "runs a shell command (!ls)",
    "x = !ls": "runs a shell command (!ls)",
    "%%bash\nls": "has a magic that is not known to be harmless (%%bash)",
    "%run other.ipynb": "has a magic that is not known to be harmless (%run)",
    "import requests\nrequests.get(url)": "uses the network (requests.get)",
    "x = read('https://example.org/a.csv')": "names the address https://example.org/a.csv",
    "x = input()": "asks for input (input)",
    "exec(code)": "runs code that is not in its text (exec)",
    "x = eval('1')": "runs code that is not in its text (eval)",
    "x = globals()": "may use all variables and functions (globals)",
    "x = vars()": "may use all variables and functions (vars)",
    "import sys\nx = sys.modules": "may use all variables and functions (sys.modules)",
    "from __main__ import x": "may use all variables and functions (__main__.x)",
    "x = In[1]": "may use all variables and functions (In)",
    "x = _5": "may use all variables and functions (_5)",
    "df.query(text)": "calls query with a computed text, which may name any variable",
    "import utils\nutils.load()": "uses utils.load, which is not known to the analysis",
    "from utils import load\nload()": "uses load, which is not known to the analysis",
    "from utils import *": "imports all names of utils, which is not known to the analysis",
    "import numpy as np\nf(np)": "passes the module np on, so that its uses cannot be found",
    "getattr(df, name)()": "uses getattr, which is not known to the analysis",
    "getattr(df, 'to_csv')('a')": "writes files (getattr)",
    "whos": "has whos alone, which IPython may take for a magic",
    "import carrel\ncarrel.report('loss', 1)": "belongs to the trial that runs it (carrel.report)",
    "import os\nx = os.environ['CARREL_OUTPUT_DIR']": "names CARREL_OUTPUT_DIR, which each trial",
    "def f(): df.to_csv('a')\nf()": "uses f, whose code writes files (df.to_csv)",
    f"x = {'+'.join('1' * 3000)}": "cannot be parsed as Python, or is nested too deeply",
    "x = (": "cannot be parsed as Python",
}


@pytest.mark.parametrize("source", OBSTACLES, ids=lambda source: source[:30])
def test_an_obstacle_is_found_and_says_what_would_help(source: str) -> None:
    obstacles = last_cell(source).obstacles
    assert obstacles[0].why.startswith(OBSTACLES[source])
    assert obstacles[0].advice.endswith(".")


@pytest.mark.parametrize(
    "source",
    [
        "import pandas as pd\ndf = pd.read_csv('a.csv').dropna()\ndf['x'] = df.y.replace({1: 2})",
        "with open('a') as f:\n    x = f.read()",
        "x = open('a').read()",
        "import json\nx = json.load(open('a'))",
        "x = df.to_csv(index=False)",
        "%matplotlib inline\nimport matplotlib.pyplot as plt\nplt.plot([1])\nplt.show()",
        "%%time\nx = sum(range(9))",
        "%%capture out\nprint(1)",
        "%load_ext autoreload\n%autoreload 2",
        "import numpy as np\nrng = np.random.default_rng(0)\nx = rng.normal(size=3)",
        "import random\nr = random.Random(3)\nx = r.random()",
        "import random\nrandom.seed(0)\nx = random.random()",
        "import numpy as np\nnp.random.seed(0)\nx = np.random.rand(3)\ny = df.sample(3)",
        "import torch\ntorch.manual_seed(0)\nx = torch.randn(3)",
        "from torch import nn\nloss = nn.Sequential(nn.ReLU(), nn.CrossEntropyLoss())",
        "from sklearn.model_selection import train_test_split as s\nx = s(a, random_state=0)",
        "from sklearn.linear_model import LogisticRegression\nm = LogisticRegression().fit(a, b)",
        "import os\nx = os.path.join('a', 'b')\ny = os.environ.get('HOME')",
        "import requests, utils",
        "import numpy as np\nx = np.load('a.npy')\ny = np.load(p, mmap_mode='r')",
        "import numpy as np\nwith np.load('a.npz') as f:\n    x = f['x']",
        "x = df.resample('D').mean()",
        "path = config.save_dir",
        "import keras\nm = keras.Sequential([keras.Input((2,)), keras.layers.Flatten()])",
        "import networkx as nx\ng = nx.erdos_renyi_graph(9, 0.1, seed=3)",
        "import keras\nkeras.utils.set_random_seed(0)\nm = keras.layers.Dense(1)\ny = df.sample(3)",
        "def f(): df.to_csv('a')",
        "import time\ntime.sleep(0)",
        "model.eval()",
        "import sys\nsys.path.append('.')",
        "class Net(dict):\n    def save(self): self.write('x')",
        "",
        "# nothing",
    ],
)
def test_what_trials_can_share_has_no_obstacle(source: str) -> None:
    assert last_cell(source).obstacles == ()


@pytest.mark.parametrize(
    ("seed", "counts"),
    [
        ("random.seed(0)", True),
        ("x = 3\nrandom.seed(x)", True),
        ("random.seed(x)", False),
        ("x = None\nrandom.seed(x)", False),
        ("x = os.environ.get('SEED')\nrandom.seed(x)", False),
        ("x = int(os.environ['SEED'])\nrandom.seed(x)", True),
        ("class C:\n    seed = 3\nrandom.seed(C.seed)", True),
        ("class C:\n    seed = None\nrandom.seed(C.seed)", False),
        ("d = {'seed': 3}\nrandom.seed(d['seed'])", True),
        ("d = dict(seed=None)\nrandom.seed(d['seed'])", False),
        ("for i in range(3): pass\nrandom.seed(i)", True),
        ("for i in 1, None: pass\nrandom.seed(i)", False),
        ("random.seed(x or 3)", True),
        ("x, y = 1, 2\nrandom.seed(x + y)", True),
        ("random.seed(depth)", True),
        ("depth = None\nrandom.seed(depth)", False),
        ("random.seed()", False),
        ("random.seed(None)", False),
        ("if x: random.seed(0)", False),
        ("def s(): random.seed(0)\ns()", True),
        ("def s(): random.seed(0)", False),
        ("def s(n):\n    random.seed(n)\ns(0)", True),
        ("def s(n):\n    random.seed(n)\ns(None)", False),
        ("def s(n=None):\n    random.seed(n)\ns()", False),
        ("def s(n=1):\n    random.seed(n)\ns()", True),
        ("class A:\n    def s(self, n): random.seed(n)\nA().s(None)", False),
        ("def s():\n    if x: return\n    random.seed(0)\ns()", False),
        ("def s():\n    random.seed(0)\n    yield\ns()", False),
        ("s = random.seed", False),
        ("import numpy as np\nnp.random.seed(0)", False),
        ("random = x\nrandom.seed(0)", False),
    ],
)
def test_only_a_seed_that_is_certain_counts(seed: str, counts: bool) -> None:
    found = last_cell("import random", seed, "y = random.random()")
    assert (found.obstacles == ()) is counts


def test_a_parameter_that_a_trial_sets_to_null_is_no_seed() -> None:
    made = notebook("import random\nrandom.seed(depth)", "x = random.random()")
    assert analyse_notebook(made).cells[-1].obstacles == ()
    assert analyse_notebook(made, optional=frozenset({"depth"})).cells[-1].obstacles


def test_a_draw_before_the_seed_is_an_obstacle() -> None:
    cell = last_cell("import random\nx = random.random()\nrandom.seed(0)")
    assert [each.line for each in cell.obstacles] == [2]


def test_code_that_was_kept_before_a_function_is_defined_is_looked_at_again() -> None:
    cells = analysed("def f(): return g()", "kept = [f]", "def g(): return lr", "kept[0]()").cells
    assert [dict(cell.parameters) for cell in cells[:3]] == [{}, {}, {}]
    assert cells[3].parameters["lr"].why == "uses f, whose code uses lr through g"


def test_code_that_was_kept_before_the_parameters_counts_after_them() -> None:
    cells = analysed("def f(): return lr", "kept = [f]", "x = 1", at=2).cells
    assert [bool(cell.parameters) for cell in cells] == [False, False, False, True]
    assert cells[3].parameters["lr"].why == (
        "follows cells that may have kept f, whose code uses lr"
    )


def test_objects_of_a_file_may_have_any_class_of_the_notebook() -> None:
    cells = ["class A:\n    def m(self): return lr", "import pickle\nx = pickle.load(open('a'))"]
    assert "lr" in last_cell(*cells).parameters
    assert last_cell(cells[1]).parameters == {}


def test_a_tag_shares_a_cell_in_spite_of_what_is_not_known() -> None:
    cell = last_cell("!ls {lr}\nimport utils\nutils.load()", tag=SHARE_TAG)
    assert (cell.obstacles, dict(cell.parameters), cell.shared_by_tag) == ((), {}, True)


def test_a_tag_does_not_hide_a_certain_use_of_a_parameter() -> None:
    assert set(last_cell("x = lr\n!ls", tag=SHARE_TAG).parameters) == {"lr"}


def test_a_tag_keeps_a_cell_from_being_shared() -> None:
    assert [each.why for each in last_cell("x = 1", tag=NO_SHARE_TAG).obstacles] == [
        "has the tag carrel-no-share"
    ]


def test_a_skipped_cell_does_nothing() -> None:
    cell = last_cell("x = lr\n!ls", tag="skip-execution")
    assert (dict(cell.parameters), cell.obstacles, set(cell.defines)) == ({}, (), set())


def test_a_seed_of_a_cell_that_may_fail_does_not_count() -> None:
    cells = ("import random", "1 / 0\nrandom.seed(0)", "x = random.random()")
    assert analysed(*cells).cells[-1].obstacles == ()
    assert analysed(*cells, tags={1: "raises-exception"}).cells[-1].obstacles


def test_another_language_is_not_analysed() -> None:
    cells = analyse_notebook(replace(notebook("x <- 1"), python=False)).cells
    assert {each.why for cell in cells for each in cell.obstacles} == {
        "is not Python, which alone is analysed"
    }


def test_names_that_a_cell_defines_uses_and_changes() -> None:
    cell = last_cell(
        "xs, d, model = [], {}, 1\ndef helper(): return d",
        textwrap.dedent("""
            import math
            total = math.pi + helper()
            xs.append(total)
            d["a"] = 1
            model.weight = 3
            total += 1
            [q for q in xs]
            """),
    )
    assert cell.defines == {"math", "total"}
    assert cell.uses == {"math", "helper", "d", "xs", "total", "model"}
    assert cell.mutates == {"xs", "d", "model", "total"}
