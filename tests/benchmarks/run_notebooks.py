"""Ten small notebooks whose run time grows with their parameters in different ways."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass

THREADS = "threads"
_START = "from threadpoolctl import threadpool_limits\nlimits = threadpool_limits(threads)"


@dataclass(frozen=True, slots=True)
class SizedNotebook:
    """A notebook of a benchmark.

    Attributes:
        cells: its code, with the parameters as names.
        ranges: the bounds of each whole parameter; values are drawn evenly in logarithms, so that
            hardly any occurs twice.
    """

    cells: tuple[str, ...]
    ranges: Mapping[str, tuple[int, int]]

    @property
    def parameters(self) -> str:
        lines = [f"{name} = {least}" for name, (least, _) in self.ranges.items()]
        return "\n".join([*lines, f"{THREADS} = 1"])

    @property
    def sources(self) -> tuple[str, ...]:
        return (_START, *self.cells)

    def draw(self, drawn: random.Random) -> dict[str, int]:
        values = {
            name: round(least * (most / least) ** drawn.random())
            for name, (least, most) in self.ranges.items()
        }
        return values | {THREADS: drawn.choice((1, 2))}


NOTEBOOKS: Mapping[str, SizedNotebook] = {
    "loop": SizedNotebook(
        ("total = 0", "for i in range(steps * 1000):\n    total += i * i % 7", "print(total)"),
        {"steps": (1000, 8000)},
    ),
    "pairs": SizedNotebook(
        (
            "import random\nrandom.seed(1)\npoints = [random.random() for _ in range(n)]",
            "near = sum(abs(a - b) < 0.01 for a in points for b in points)",
        ),
        {"n": (800, 2800)},
    ),
    "matrix": SizedNotebook(
        (
            "import numpy as np\na = np.random.default_rng(1).random((n, n))",
            "for _ in range(repeats):\n    a = a @ a\n    a /= abs(a).max()",
        ),
        {"n": (300, 900), "repeats": (3, 12)},
    ),
    "svd": SizedNotebook(
        (
            "import numpy as np\na = np.random.default_rng(1).random((n, n))",
            "values = np.linalg.svd(a, compute_uv=False)\nprint(values[0])",
        ),
        {"n": (300, 1000)},
    ),
    "sort": SizedNotebook(
        (
            "import numpy as np\nrng = np.random.default_rng(1)",
            "for _ in range(rounds):\n    values = np.sort(rng.random(thousands * 1000))",
        ),
        {"thousands": (500, 2500), "rounds": (2, 8)},
    ),
    "forest": SizedNotebook(
        (
            "from sklearn.datasets import make_classification\n"
            "x, y = make_classification(rows, 20, random_state=1)",
            "from sklearn.ensemble import RandomForestClassifier\n"
            "model = RandomForestClassifier(trees, random_state=1, n_jobs=threads).fit(x, y)",
        ),
        {"rows": (1000, 4000), "trees": (10, 40)},
    ),
    "clusters": SizedNotebook(
        (
            "from sklearn.datasets import make_blobs\n"
            "x, _ = make_blobs(rows, 16, centers=8, random_state=1)",
            "from sklearn.cluster import KMeans\n"
            "KMeans(k, n_init=4, max_iter=30, tol=0, random_state=1).fit(x)",
        ),
        {"rows": (5000, 25_000), "k": (4, 16)},
    ),
    "neighbours": SizedNotebook(
        (
            "import numpy as np\nrng = np.random.default_rng(1)\nx = rng.random((rows, 12))",
            "from sklearn.neighbors import NearestNeighbors\n"
            "NearestNeighbors(algorithm='brute', n_jobs=threads).fit(x).kneighbors(x)",
        ),
        {"rows": (2000, 9000)},
    ),
    "network": SizedNotebook(
        (
            "import numpy as np, warnings\nwarnings.simplefilter('ignore')\n"
            "rng = np.random.default_rng(1)\nx = rng.random((2000, 20))\ny = x.sum(1) > 10",
            "from sklearn.neural_network import MLPClassifier\n"
            "MLPClassifier((width,), max_iter=epochs, n_iter_no_change=1000, random_state=1)"
            ".fit(x, y)",
        ),
        {"width": (16, 192), "epochs": (8, 40)},
    ),
    "primes": SizedNotebook(
        (
            "def prime(n):\n    return all(n % d for d in range(2, int(n ** 0.5) + 1))",
            "print(sum(map(prime, range(2, limit))))",
        ),
        {"limit": (40_000, 200_000)},
    ),
}
