"""Notebooks of code cells, as text and as they are analysed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType

from carrel.hub.sweeps.cell_analysis import CellAnalysis, NotebookAnalysis
from carrel.hub.sweeps.notebook_analysis import analyse_notebook
from carrel.hub.sweeps.notebook_cells import SweepNotebook, read_sweep_notebook

PARAMETERS = "lr = 0.1\ndepth = 2\nname = 'adam'"
SKLEARN = (
    "import numpy as np\nimport pandas as pd\n"
    "from sklearn.model_selection import train_test_split\n"
    "from sklearn.preprocessing import StandardScaler\nimport matplotlib.pyplot as plt\n"
    "np.random.seed(0)\n%matplotlib inline",
    "def preprocess(df):\n    df = df.dropna()\n    return StandardScaler().fit_transform(df)\n\n"
    "def train(X, y):\n    return fit(X, y, lr=lr, depth=depth)\n\n"
    "def fit(X, y, lr, depth):\n    w = np.zeros(X.shape[1])\n    for step in range(depth):\n"
    "        w -= lr * X.T @ (X @ w - y)\n    return w",
    "df = pd.read_csv('train.csv')\nprint(df.shape)\ndf.head()",
    "y = df.pop('target').to_numpy()\nX = preprocess(df)\n"
    "X, X_test, y, y_test = train_test_split(X, y, random_state=0)",
    "plt.hist(y)\nplt.title('targets')\nplt.show()",
    "w = train(X, y)",
    "error = ((X_test @ w - y_test) ** 2).mean()\nprint(f'{name}: {error:.3f}')",
    "plt.plot(w)\nplt.savefig('w.png')",
)
TORCH = (
    "import torch\nfrom torch import nn\nfrom torch.utils.data import DataLoader, TensorDataset\n"
    "torch.manual_seed(0)\ndevice = 'cuda' if torch.cuda.is_available() else 'cpu'",
    "X, y = torch.load('data.pt')\nX = (X - X.mean(0)) / X.std(0)\n"
    "X, y = X.to(device), y.to(device)",
    "class Net(nn.Module):\n    def __init__(self, width=64):\n        super().__init__()\n"
    "        self.layers = nn.Sequential(nn.Linear(10, width), nn.ReLU(), nn.Linear(width, 1))\n"
    "    def forward(self, x):\n        return self.layers(x)",
    "loader = DataLoader(TensorDataset(X, y), batch_size=64, shuffle=True)\n"
    "model = Net().to(device)",
    "def epoch(optimizer):\n    for a, b in loader:\n        optimizer.zero_grad()\n"
    "        nn.functional.mse_loss(model(a), b).backward()\n        optimizer.step()",
    "%%time\nwarm = torch.optim.SGD(model.parameters(), lr=0.1)\n"
    "for _ in range(3):\n    epoch(warm)",
    "optimizer = torch.optim.SGD(model.parameters(), lr=lr)\nfor _ in range(depth):\n"
    "    epoch(optimizer)",
    "model.eval()\nwith torch.no_grad():\n    loss = nn.functional.mse_loss(model(X), y).item()\n"
    "print(loss)",
)


def notebook_text(
    *sources: str,
    parameters: str | None = PARAMETERS,
    at: int = 0,
    tags: Mapping[int, str] = MappingProxyType({}),
) -> str:
    """Return the text of a notebook with these cells, and that of parameters before cell ``at``."""
    cells = [
        (source, [tags[index]] if index in tags else []) for index, source in enumerate(sources)
    ]
    if parameters is not None:
        cells.insert(at, (parameters, ["parameters"]))
    return json.dumps(
        {
            "cells": [
                {"cell_type": "code", "source": source, "metadata": {"tags": own}}
                for source, own in cells
            ],
            "metadata": {"kernelspec": {"name": "python3", "language": "python"}},
            "nbformat": 4,
            "nbformat_minor": 5,
        }
    )


def notebook(*sources: str, **more: object) -> SweepNotebook:
    return read_sweep_notebook("train.ipynb", notebook_text(*sources, **more))  # type: ignore[arg-type]


def analysed(*sources: str, **more: object) -> NotebookAnalysis:
    return analyse_notebook(notebook(*sources, **more))


def last_cell(*sources: str, tag: str = "") -> CellAnalysis:
    """Return the analysis of the last of these cells, after a cell of parameters."""
    tags = {len(sources) - 1: tag} if tag else {}
    return analysed(*sources, tags=tags).cells[-1]


def hundred_cells() -> SweepNotebook:
    """Return a notebook of 100 cells in which functions of early cells are used to the end."""
    cells = [*SKLEARN, *TORCH] * 6
    helpers = [
        f"def helper{n}(x):\n    return helper{n + 1}(x) if x > {n} else np.sqrt(x)"
        for n in range(20)
    ]
    return notebook(
        *helpers, *(f"y{n} = helper0({n})\n{cell}" for n, cell in enumerate(cells[:79]))
    )
