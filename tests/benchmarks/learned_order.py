"""A learned order beside Carrel's, QSSF and LAS: ``python -m tests.benchmarks.learned_order``.

The protocol is docs/explanation/learned-order.md. ``--train FILE`` writes the weights (ten minutes
of one core); ``--weights FILE`` names those that are evaluated on the test sets (five
minutes). ``--short`` does either on two days of one virtual cluster, to see that it works.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import cache, partial
from itertools import chain
from multiprocessing import get_context
from pathlib import Path
from random import Random
from statistics import fmean
from typing import TYPE_CHECKING

from carrel.hub.config import garbage_collection
from carrel.hub.scheduling.model.learned_order import WEIGHTS, LearnedOrder
from carrel.hub.simulation.policies.carrel_policy import CarrelPolicy
from carrel.hub.simulation.policies.policy import BASELINES, Schedules
from carrel.hub.simulation.replay.experiment import Experiment, Pools, run
from carrel.hub.simulation.replay.runtime_estimates import parse_estimates
from carrel.hub.simulation.workload.jobs import Trace, TraceJob
from carrel.hub.simulation.workload.nodes import ONE_POOL, one_pool, parse_nodes
from carrel.hub.simulation.workload.reader import first_moment

from . import report
from .plays import DRAWN, HELIOS_NODES
from .traces import NODE, RESTART_COST, helios, nodes_of, philly

if TYPE_CHECKING:
    import optuna

MODULE = "tests.benchmarks.learned_order"
WEIGHTS_FILE = Path(__file__).parent / "learned_order.json"
DAY = 86400.0
GENERATIONS, SHORT_GENERATIONS = 40, 2
TRAINING_SEED = 1000
"""Seed of the errors of the first trial; each generation has the next seed."""
CHOOSING_SEED = 500
CHOOSE_EVERY = 4
"""Generations from one candidate to the next; the first generation has one too."""
PROCESSES = 2
LEARNED = "learned"
TEST_SEEDS, SHORT_SEEDS = range(10), range(2)
RESAMPLES = 2000
LARGEST = 3.0
"""Bound of the weights, on both sides of the start."""
START = (1.0, *(WEIGHTS - 1) * (0.0,))
PEERS: Mapping[str, Schedules] = {
    "carrel": CarrelPolicy(),
    "qssf": BASELINES["qssf"],
    "las": BASELINES["las"],
}
UNTOLD = frozenset({"las"})
"""The peers that read no estimates: one replay stands for all seeds."""

Times = Mapping[int, tuple[float, int]]
"""Sum of completion times in seconds, and number of jobs, by day of submission."""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class JobSet:
    """Jobs, and the pool on which they are replayed."""

    name: str
    trace: Trace
    pools: Pools


def alone(cluster: str, first: str = "2017-09-04", after: str = "2018-01-01") -> JobSet:
    """The jobs of a virtual cluster of Philly from one day to before another, on its own nodes."""
    jobs = _between(first, after, cluster)
    nodes = nodes_of(jobs)[cluster]
    return JobSet(
        name=f"{cluster}, {first} to {after}" if first > "2017-09-04" else f"{cluster}, all weeks",
        trace=Trace(name=cluster, jobs=jobs),
        pools={ONE_POOL: one_pool(nodes, NODE).pool(ONE_POOL)},
    )


def of_helios() -> JobSet:
    return JobSet(name="Helios", trace=helios(), pools=parse_nodes(HELIOS_NODES).pools())


def _between(first: str, after: str, cluster: str) -> tuple[TraceJob, ...]:
    since, until = first_moment(first), first_moment(after)
    return tuple(
        job for job in philly().jobs if since <= job.submitted_at < until and job.tenant == cluster
    )


class Use(StrEnum):
    """What sets are used for."""

    TRAIN = "train"
    CHOOSE = "choose"
    TEST = "test"


CLUSTERS = ("6214e9", "11cb48", "6c71a0")
SETS: Mapping[tuple[Use, bool], tuple[Callable[[], JobSet], ...]] = {
    (Use.TRAIN, False): (
        partial(alone, "6214e9", "2017-09-18", "2017-09-25"),
        partial(alone, "11cb48", "2017-09-25", "2017-10-02"),
        partial(alone, "6c71a0", "2017-09-18", "2017-10-16"),
    ),
    (Use.CHOOSE, False): tuple(
        partial(alone, each, "2017-10-16", "2017-11-06") for each in CLUSTERS
    ),
    (Use.TEST, False): (
        *(partial(alone, each, "2017-11-06") for each in CLUSTERS),
        *(partial(alone, each) for each in ("b436b2", "103959", "ee9e8c", "0e4a51")),
        of_helios,
    ),
    (Use.TRAIN, True): (partial(alone, "6c71a0", "2017-10-02", "2017-10-04"),),
    (Use.CHOOSE, True): (partial(alone, "6c71a0", "2017-10-04", "2017-10-06"),),
    (Use.TEST, True): (partial(alone, "6c71a0", "2017-10-06", "2017-10-08"),),
}
"""The sets by use, and whether they are those of ``--short``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """One replay of a set.

    Attributes:
        number: of the set among those of this use.
        policy: the name of a peer, or ``LEARNED``.
        weights: of ``LEARNED``.
    """

    use: Use
    short: bool
    number: int
    policy: str
    seed: int
    weights: tuple[float, ...] = ()

    def times(self) -> Times:
        if self.policy != LEARNED:
            return times(job_set(self.use, self.short, self.number), PEERS[self.policy], self.seed)
        order = LearnedOrder(name=LEARNED, weights=self.weights)
        policy = CarrelPolicy(name=LEARNED, learned_order=order)
        return times(job_set(self.use, self.short, self.number), policy, self.seed)


@cache
def job_set(use: Use, short: bool, number: int) -> JobSet:
    return SETS[use, short][number]()


@contextmanager
def workers() -> Iterator[Executor]:
    """Processes for replays."""
    with ProcessPoolExecutor(
        PROCESSES,
        mp_context=get_context("spawn"),
        initializer=garbage_collection.raise_thresholds,
    ) as pool:
        yield pool


def times(jobs: JobSet, policy: Schedules, seed: int) -> Times:
    """Replay a set under a policy, with the errors of this seed."""
    experiment = Experiment(
        trace=jobs.trace,
        pools=jobs.pools,
        estimator=parse_estimates(DRAWN, jobs.trace.jobs, seed),
        restart_cost=RESTART_COST,
    )
    sums: dict[int, tuple[float, int]] = {}
    for outcome in run(experiment, policy).outcomes:
        for each in outcome.runs:
            assert each.ended_at is not None, f"{each.job.id} has not ended"
            day = int(each.job.submitted_at // DAY)
            total, count = sums.get(day, (0.0, 0))
            sums[day] = (total + each.ended_at - each.job.submitted_at, count + 1)
    return sums


def mean_of(found: Times) -> float:
    return sum(total for total, _ in found.values()) / sum(count for _, count in found.values())


# -- training ---------------------------------------------------------------------------------


def objectives(
    pool: Executor, candidates: Sequence[tuple[float, ...]], use: Use, short: bool, seed: int
) -> list[float]:
    """Replay the sets with these weights.

    Returns, for each, the mean logarithm of the mean completion time over that of Carrel's own
    order.
    """
    own = Replay(use=use, short=short, number=0, policy="carrel", seed=seed)
    policies = [own, *(replace(own, policy=LEARNED, weights=each) for each in candidates)]
    plays = [
        replace(policy, number=number)
        for policy in policies
        for number in range(len(SETS[use, short]))
    ]
    logs = [math.log(mean_of(found)) for found in pool.map(Replay.times, plays)]
    each = len(SETS[use, short])
    means = [fmean(logs[at : at + each]) for at in range(0, len(logs), each)]
    return [mean - means[0] for mean in means[1:]]


def train(target: Path, generations: int, *, short: bool) -> None:
    """Train weights and write them, with the objective of each candidate."""
    import optuna  # noqa: PLC0415  # only the training needs it

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    # The first trial gives the sampler its search space; the first generation follows.
    study = optuna.create_study(sampler=optuna.samplers.CmaEsSampler(seed=0))
    study.enqueue_trial({f"w{number}": value for number, value in enumerate(START)})
    population = 4 + math.floor(3 * math.log(WEIGHTS))
    candidates: list[dict[str, object]] = []
    best: tuple[float, tuple[float, ...]] = (math.inf, START)
    with workers() as pool:
        ask(study, 1, pool, short, TRAINING_SEED)
        for generation in range(1, 1 + generations):
            seed = TRAINING_SEED + generation
            value, weights = min(ask(study, population, pool, short, seed))
            if generation % CHOOSE_EVERY and generation != 1:
                report.note(f"generation {generation}: training {value:+.4f}")
                continue
            (chosen,) = objectives(pool, [weights], Use.CHOOSE, short, CHOOSING_SEED)
            best = min(best, (chosen, tuple(round(each, 6) for each in weights)))
            report.note(f"generation {generation}: training {value:+.4f}, choosing {chosen:+.4f}")
            candidates.append({"generation": generation, "training": value, "choosing": chosen})
            order = LearnedOrder(name=target.stem, weights=best[1])
            # After each candidate, so that a training that is stopped leaves its best one.
            target.write_text(
                order.as_json(
                    command=report.command_line(MODULE, "--train", target.name),
                    optuna=optuna.__version__,
                    objective_on_sets_for_choosing=best[0],
                    candidates=candidates,
                ),
                encoding="utf-8",
            )


def ask(
    study: optuna.Study, count: int, pool: Executor, short: bool, seed: int
) -> list[tuple[float, tuple[float, ...]]]:
    """Ask for weights, tell their objectives, and return both."""
    trials = [study.ask() for _ in range(count)]
    weights = [
        tuple(
            trial.suggest_float(f"w{number}", start - LARGEST, start + LARGEST)
            for number, start in enumerate(START)
        )
        for trial in trials
    ]
    values = objectives(pool, weights, Use.TRAIN, short, seed)
    for trial, value in zip(trials, values, strict=True):
        study.tell(trial, value)
    return list(zip(values, weights, strict=True))


# -- tests ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Gain:
    """How much shorter the mean completion time is than that of a peer, in percent.

    Attributes:
        ours, theirs: mean completion times in seconds, means of the seeds.
        low, high: 95 % interval of the gain, by bootstrap.
    """

    jobs: str
    peer: str
    ours: float
    theirs: float
    low: float
    high: float
    seeds: int

    @property
    def gain(self) -> float:
        return 100 * (1 - self.ours / self.theirs)

    def fields(self) -> dict[str, object]:
        return {
            "name": f"{self.jobs}, beside {self.peer}",
            "ours": round(self.ours, 1),
            "peer": round(self.theirs, 1),
            "unit": "s",
            "gain_percent": round(self.gain, 3),
            "low_percent": round(self.low, 3),
            "high_percent": round(self.high, 3),
            "seeds": self.seeds,
            "beats": self.low > 0,
        }


def interval(ours: Sequence[Times], theirs: Sequence[Times]) -> tuple[float, float]:
    """The 95 % percentile interval of the gain in percent, over seeds and days of submission."""
    draw = Random(0)  # noqa: S311  # a repeatable experiment, no secret
    days, seeds = sorted(ours[0]), range(len(ours))
    gains = []
    for _ in range(RESAMPLES):
        some = draw.choices(seeds, k=len(seeds))
        then = draw.choices(days, k=len(days))
        one = sum(ours[seed][day][0] for seed in some for day in then)
        other = sum(theirs[seed][day][0] for seed in some for day in then)
        gains.append(100 * (1 - one / other))
    gains.sort()
    return gains[round(0.025 * (RESAMPLES - 1))], gains[round(0.975 * (RESAMPLES - 1))]


def evaluate(weights: Path, *, short: bool) -> list[Gain]:
    """Compare the weights with all peers on each test set."""
    order = LearnedOrder.from_json(weights.stem, weights.read_bytes())
    seeds = SHORT_SEEDS if short else TEST_SEEDS
    found: list[Gain] = []
    with workers() as pool:
        for number in range(len(SETS[Use.TEST, short])):
            first = Replay(use=Use.TEST, short=short, number=number, policy=LEARNED, seed=0)
            plays = {
                policy: [
                    replace(first, policy=policy, seed=seed, weights=order.weights)
                    for seed in (seeds[:1] if policy in UNTOLD else seeds)
                ]
                for policy in (LEARNED, *PEERS)
            }
            # All of a set at once, so that no process waits for another.
            results = iter(pool.map(Replay.times, chain.from_iterable(plays.values())))
            times_of = {policy: [next(results) for _ in some] for policy, some in plays.items()}
            name = job_set(Use.TEST, short, number).name
            for peer in PEERS:
                theirs = times_of[peer]
                if peer in UNTOLD:
                    theirs = len(seeds) * theirs
                found.append(gain_of(name, peer, times_of[LEARNED], theirs))
                report.note(json.dumps(found[-1].fields()))
    return found


def gain_of(name: str, peer: str, ours: Sequence[Times], theirs: Sequence[Times]) -> Gain:
    low, high = interval(ours, theirs)
    return Gain(
        jobs=name,
        peer=peer,
        ours=fmean(map(mean_of, ours)),
        theirs=fmean(map(mean_of, theirs)),
        low=low,
        high=high,
        seeds=len(ours),
    )


def table(found: Sequence[Gain]) -> str:
    """Markdown, as docs/explanation/learned-order.md holds it."""
    lines = [
        "| test set | peer | learned | peer's | gain | 95 % interval | beats |",
        "| --- | --- | ---: | ---: | ---: | ---: | --- |",
        *(
            f"| {each.jobs} | {each.peer} | {each.ours:,.0f} s | {each.theirs:,.0f} s "
            f"| {each.gain:+.1f} % | {each.low:+.1f} to {each.high:+.1f} "
            f"| {'yes' if each.low > 0 else '**no**'} |"
            for each in found
        ),
    ]
    return "\n".join([report.conditions(), "", *lines])


def main() -> int:
    options = report.parser(__doc__ or "")
    options.add_argument("--train", type=Path, metavar="FILE", help="train, and write weights")
    options.add_argument("--generations", type=int, metavar="N", default=GENERATIONS)
    options.add_argument("--weights", type=Path, metavar="FILE", default=WEIGHTS_FILE)
    options.add_argument("--short", action="store_true", help="two days of one virtual cluster")
    chosen = options.parse_args()
    garbage_collection.raise_thresholds()
    if chosen.train is not None:
        generations = SHORT_GENERATIONS if chosen.short else chosen.generations
        train(chosen.train, generations, short=chosen.short)
        return 0
    found = evaluate(chosen.weights, short=chosen.short)
    print("\n".join(json.dumps(each.fields()) for each in found) if chosen.json else table(found))
    return 0 if all(each.low > 0 for each in found) else 1


if __name__ == "__main__":
    sys.exit(main())
