"""Step time as a function of workers, nodes and batch, fitted to few samples.

The form is that of Pollux (Qiao et al., OSDI 2021): computation and synchronisation overlap in
part, ``T = (T_grad^g + T_sync^g)^(1/g)``. Computation is linear in the batch of one worker.
Synchronisation is zero for one worker and otherwise linear in the workers beyond two, with
coefficients of its own for workers on one node and for those on several.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import geometric_mean

from ..errors import InvalidInput
from .step_samples import StepSample

_PRIOR = (-1.0, -0.7, -2.0, -4.0, -1.5, -4.0, 0.0)
"""Logarithms of the coefficients before any sample, relative to the mean step and batch: most time
is computation, and a further worker adds little. The last is that of ``g - 1``."""
_PRIOR_DEVIATIONS = (2.0, 2.0, 2.0, 2.0, 2.0, 2.0, 1.0)
_COUNT = len(_PRIOR)
_HIGHEST_OVERLAP = 9.0
_LOWEST_OVERLAP = 1e-3
_NOISE, _NOISE_WEIGHT = 0.05, 4.0
"""The relative error of a sample before any is known, and how many samples that counts as."""
_FREEDOM = 4.0
"""Degrees of freedom of the errors: Student's t distribution, which bears outliers."""
_ROUNDS, _STEPS = 4, 40
_HIGHEST_DAMPING = 1e8
_STARTS = (-2.0, 0.0, 1.5)
_TINY = 1e-12
_INSIDE = 1.645
"""Standard deviations on both sides of an interval that holds 90 % of normal values."""

_Vector = list[float]
_Matrix = list[list[float]]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepForecast:
    """The expected time of a step in seconds, and a 90 % interval."""

    seconds: float
    low: float
    high: float


@dataclass(frozen=True, slots=True, kw_only=True)
class StepTimeModel:
    """A fitted model of step times; see ``fit_step_times``.

    Attributes:
        logarithms: of the coefficients, relative to the two scales.
        spread: their covariances.
        noise: relative error of one measured step.
        seconds_scale: mean step of the samples, in seconds.
        batch_scale: mean batch of one worker.
        most_workers: largest number of workers among the samples.
        workers_per_node: largest number of workers on one node among them.
        several_nodes: whether any sample was on several nodes.
        corrections: by nodes and workers, how much longer steps of this shape took than the formula
            says, as a logarithm. The mean error of its samples, shrunk as if one more had none.
    """

    logarithms: tuple[float, ...]
    spread: tuple[tuple[float, ...], ...]
    noise: float
    seconds_scale: float
    batch_scale: float
    most_workers: int
    workers_per_node: int
    several_nodes: bool
    corrections: Mapping[tuple[int, int], float]

    def predict(self, workers: int, nodes: int, batch: float) -> StepForecast:
        """Return the time of a step; ``batch`` is that of one worker.

        Past the largest number of workers of the samples, the law of the growth is itself not
        known: the interval reaches from synchronisation that grows no further to synchronisation
        that grows twice as fast.
        """
        found = self._predict(workers, nodes, batch)
        if workers <= self.most_workers:
            return found
        flat = self._predict(self.most_workers, nodes, batch)
        steep = self._predict(2 * workers - self.most_workers, nodes, batch)
        return StepForecast(seconds=found.seconds, low=min(flat.low, found.low), high=steep.high)

    def _predict(self, workers: int, nodes: int, batch: float) -> StepForecast:
        logarithm, slopes = _step(self.logarithms, workers, nodes, batch / self.batch_scale)
        moved = [sum(map(float.__mul__, row, slopes)) for row in self.spread]
        variance = sum(map(float.__mul__, moved, slopes)) + self.noise**2
        half = _INSIDE * math.sqrt(max(0.0, variance))
        logarithm += self.corrections.get((nodes, workers), 0.0)
        seconds = self.seconds_scale * math.exp(logarithm)
        width = math.exp(min(half, 50.0))
        return StepForecast(seconds=seconds, low=seconds / width, high=seconds * width)


def scales(samples: Iterable[StepSample]) -> bool:
    """Whether the samples are of several numbers of workers."""
    return len({each.workers for each in samples}) > 1


def fit_step_times(samples: Sequence[StepSample]) -> StepTimeModel:
    """Fit the model to samples of one job on one device model.

    The fit is the most probable one under a weak prior (Laplace's approximation gives the
    intervals), by the method of Levenberg and Marquardt on relative errors, with weights of
    Student's t distribution.

    Raises:
        InvalidInput: the samples are of fewer than two numbers of workers.
    """
    if not scales(samples):
        raise InvalidInput(
            "How the job scales is not known: all samples have the same number of workers.",
            accepted="Samples of at least two numbers of workers.",
        )
    return _StepTimeFit(samples).model()


class _StepTimeFit:
    """The samples in relative units, and the search for the best coefficients."""

    def __init__(self, samples: Sequence[StepSample]) -> None:
        self._seconds = geometric_mean(each.seconds for each in samples)
        self._batch = geometric_mean(each.batch for each in samples)
        self._rows = [
            (
                each.workers,
                each.nodes,
                each.batch / self._batch,
                math.log(each.seconds / self._seconds),
            )
            for each in samples
        ]
        self._most = max(each.workers for each in samples)
        self._per_node = max(math.ceil(each.workers / each.nodes) for each in samples)
        self._several_nodes = any(each.nodes > 1 for each in samples)

    def model(self) -> StepTimeModel:
        found = min(
            (self._search([*_PRIOR[:-1], start]) for start in _STARTS), key=lambda at: at[0]
        )
        _, values, weights, noise = found
        matrix, _ = self._normal(values, weights, noise)
        return StepTimeModel(
            logarithms=tuple(values),
            spread=tuple(map(tuple, _inverse(matrix))),
            noise=noise,
            seconds_scale=self._seconds,
            batch_scale=self._batch,
            most_workers=self._most,
            workers_per_node=self._per_node,
            several_nodes=self._several_nodes,
            corrections=self._corrections(values),
        )

    def _corrections(self, values: Sequence[float]) -> Mapping[tuple[int, int], float]:
        by_shape: dict[tuple[int, int], _Vector] = {}
        for (workers, nodes, _, _), error in zip(self._rows, self._errors(values), strict=True):
            by_shape.setdefault((nodes, workers), []).append(error)
        return {shape: sum(errors) / (len(errors) + 1) for shape, errors in by_shape.items()}

    def _search(self, values: _Vector) -> tuple[float, _Vector, _Vector, float]:
        """Return the cost, coefficients, weights and noise that a start leads to."""
        weights, noise = [1.0] * len(self._rows), _NOISE
        for _ in range(_ROUNDS):
            values = self._descend(values, weights, noise)
            errors = self._errors(values)
            total = sum(w * e * e for w, e in zip(weights, errors, strict=True))
            known = _NOISE_WEIGHT * _NOISE**2
            noise = math.sqrt((known + total) / (_NOISE_WEIGHT + len(errors)))
            weights = [(_FREEDOM + 1) / (_FREEDOM + (e / noise) ** 2) for e in errors]
        return self._cost(values, weights, noise), values, weights, noise

    def _descend(self, values: _Vector, weights: _Vector, noise: float) -> _Vector:
        damping, cost = 1e-2, self._cost(values, weights, noise)
        for _ in range(_STEPS):
            matrix, slope = self._normal(values, weights, noise)
            while damping < _HIGHEST_DAMPING:
                damped = [[*row] for row in matrix]
                for at in range(_COUNT):
                    damped[at][at] *= 1.0 + damping
                step = _solve(damped, slope)
                moved = [v + max(-2.0, min(2.0, s)) for v, s in zip(values, step, strict=True)]
                new = self._cost(moved, weights, noise)
                if new <= cost:
                    break
                damping *= 4.0
            else:
                return values
            gain, values, cost, damping = cost - new, moved, new, damping / 4.0
            if gain < 1e-7 * (1.0 + cost):
                return values
        return values

    def _errors(self, values: Sequence[float]) -> _Vector:
        return [
            wanted - _step(values, workers, nodes, batch)[0]
            for workers, nodes, batch, wanted in self._rows
        ]

    def _cost(self, values: Sequence[float], weights: _Vector, noise: float) -> float:
        errors = self._errors(values)
        misfit = sum(w * e * e for w, e in zip(weights, errors, strict=True)) / noise**2
        return misfit + sum(
            ((value - mean) / deviation) ** 2
            for value, mean, deviation in zip(values, _PRIOR, _PRIOR_DEVIATIONS, strict=True)
        )

    def _normal(
        self, values: Sequence[float], weights: _Vector, noise: float
    ) -> tuple[_Matrix, _Vector]:
        """Return the matrix and the right side of the normal equations."""
        matrix = [[0.0] * _COUNT for _ in range(_COUNT)]
        right = [0.0] * _COUNT
        for (workers, nodes, batch, wanted), weight in zip(self._rows, weights, strict=True):
            reached, slopes = _step(values, workers, nodes, batch)
            factor = weight / noise**2
            used = [at for at in range(_COUNT) if slopes[at]]
            for i in used:
                right[i] += factor * slopes[i] * (wanted - reached)
                for j in used:
                    matrix[i][j] += factor * slopes[i] * slopes[j]
        for at, deviation in enumerate(_PRIOR_DEVIATIONS):
            matrix[at][at] += deviation**-2
            right[at] += (_PRIOR[at] - values[at]) / deviation**2
        return matrix, right


def _step(
    values: Sequence[float], workers: int, nodes: int, batch: float
) -> tuple[float, tuple[float, ...]]:
    """Return the logarithm of the step time in relative units, and its slopes.

    The slopes are the derivatives by the logarithms of the coefficients: computation (constant, by
    batch), synchronisation on one node (constant, by worker), on several nodes, and the overlap.
    """
    fixed, by_batch = math.exp(values[0]), math.exp(values[1]) * batch
    computed = fixed + by_batch
    if workers == 1:
        parts = (fixed / computed, by_batch / computed)
        return math.log(computed), (*parts, 0.0, 0.0, 0.0, 0.0, 0.0)
    first = 2 if nodes == 1 else 4
    base, growth = math.exp(values[first]), math.exp(values[first + 1]) * (workers - 2)
    synchronised = max(base + growth, _TINY)
    overlap = min(_HIGHEST_OVERLAP, max(_LOWEST_OVERLAP, math.exp(min(values[6], 50.0))))
    power = 1.0 + overlap
    log_computed, log_synchronised = math.log(computed), math.log(synchronised)
    largest = max(log_computed, log_synchronised)
    terms = (
        math.exp(power * (log_computed - largest)),
        math.exp(power * (log_synchronised - largest)),
    )
    logarithm = largest + math.log(sum(terms)) / power
    share = terms[0] / sum(terms)
    by_power = (share * log_computed + (1 - share) * log_synchronised - logarithm) / power
    inside = _LOWEST_OVERLAP < overlap < _HIGHEST_OVERLAP
    slopes = [0.0] * _COUNT
    slopes[0], slopes[1] = share * fixed / computed, share * by_batch / computed
    slopes[first] = (1 - share) * base / synchronised
    slopes[first + 1] = (1 - share) * growth / synchronised
    slopes[6] = by_power * overlap if inside else 0.0
    return logarithm, tuple(slopes)


def _solve(matrix: _Matrix, right: _Vector) -> _Vector:
    """Solve linear equations whose matrix is symmetric and positive definite (Cholesky)."""
    lower = _cholesky(matrix)
    size = len(right)
    middle = [0.0] * size
    for i in range(size):
        middle[i] = (right[i] - sum(lower[i][k] * middle[k] for k in range(i))) / lower[i][i]
    found = [0.0] * size
    for i in reversed(range(size)):
        after = sum(lower[k][i] * found[k] for k in range(i + 1, size))
        found[i] = (middle[i] - after) / lower[i][i]
    return found


def _cholesky(matrix: _Matrix) -> _Matrix:
    size = len(matrix)
    lower = [[0.0] * size for _ in range(size)]
    for i in range(size):
        for j in range(i + 1):
            rest = matrix[i][j] - sum(lower[i][k] * lower[j][k] for k in range(j))
            lower[i][j] = math.sqrt(max(rest, _TINY)) if i == j else rest / lower[j][j]
    return lower


def _inverse(matrix: _Matrix) -> _Matrix:
    size = len(matrix)
    return [_solve(matrix, [float(i == at) for i in range(size)]) for at in range(size)]
