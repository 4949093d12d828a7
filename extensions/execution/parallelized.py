"""Train with the processes of a lease: ``execution.parallelize``."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch.utils import _pytree as pytree

from ...hub.errors import InvalidInput
from ..data_parallel.global_batch import GlobalBatch, refuse_other_batches
from ..data_parallel.gradient_exchange import ExchangeWay, GradientExchange
from ..data_parallel.gradient_sums import dense_sum, mostly_zero_rows, row_sums, sparse_sum
from ..data_parallel.observed_step import ObservedStep, observe, refusing_other_parameters
from ..data_parallel.processes import TrainingProcesses
from .choice import (
    CALLS,
    SECONDS,
    ExecutionCandidate,
    ExecutionChoice,
    ExecutionSample,
    choose,
    without_random_numbers,
)
from .equality import TOLERANCE
from .explanation import ExecutionExplanation
from .purity import DROPOUT

_SMALL_GRADIENT = 0.1
"""As a part of the largest gradient of a step: such ones may be nothing but rounding errors."""


def parallelize(
    step: Callable[..., Any],
    *,
    new_random_numbers: bool = False,
    always_divide: bool = False,
    calls: int = CALLS,
    seconds: float = SECONDS,
    timeout: float = 600.0,
) -> ParallelStep:
    """Return a training step that the processes of a job do together.

    Each process executes the same program, with the same batches. In the first call, the step is
    executed several times, and its modules and optimizers are put back each time. It must have no
    other effects. The way is chosen by time, among those with the loss and gradients of one device.

    Args:
        step: takes a batch, calls ``backward`` and ``step`` of optimizers of ``torch.optim``, and
            returns numbers: means or sums over the batch, such as its loss. The first dimension of
            each tensor that is an argument is that of the batch.
        new_random_numbers: a step that draws random numbers (dropout) may be divided; it then draws
            others than on one device. The comparison is made without dropout.
        always_divide: divide each batch, and compare neither results nor times with one device:
            for batches too large for it. The loss must be a mean over the batch.
        calls: how many steps there will probably be.
        seconds: what the choice in the first call may take.
        timeout: seconds after which a process that waits for another one fails.

    Raises:
        InvalidInput: variables of the environment are missing or wrong.
        ProcessLost: not all processes have come in time.
    """
    return ParallelStep(
        step,
        new_random_numbers=new_random_numbers,
        always_divide=always_divide,
        calls=calls,
        seconds=seconds,
        processes=TrainingProcesses(timeout),
    )


class ParallelStep:
    """A training step of several processes; see ``parallelize``.

    Attributes:
        rank: of this process, from 0. Let only process 0 write files.
        size: number of processes.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        *,
        new_random_numbers: bool,
        always_divide: bool,
        calls: int,
        seconds: float,
        processes: TrainingProcesses,
    ) -> None:
        functools.update_wrapper(self, step)
        self._step = step
        self._new_random_numbers = new_random_numbers
        self._always_divide = always_divide
        self._calls = calls
        self._seconds = seconds
        self._processes = processes
        self.rank, self.size = processes.rank, processes.size
        self._chosen: Callable[[GlobalBatch], Any] | None = None
        self._choices: dict[str, ExecutionChoice] = {}
        self._notes: list[str] = []
        self._small = 0
        if self.size > 1:
            processes.share_random_states()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Train on one batch; return what the step returns for the whole batch.

        Raises:
            InvalidInput: the batches of the processes differ, or arguments are no batch.
            ProcessLost: another process failed, ended or did not answer.
            Exception: whatever the step raises.
        """
        if self.size == 1:
            return self._step(*args, **kwargs)
        try:
            batch = GlobalBatch(args, kwargs)
            if batch.rows < self.size:
                self._small += 1
                return self._whole(batch)
            if self._chosen is None:
                self._compare_batches(batch)
                self._chosen = self._choose(batch)
            return self._chosen(batch)
        except BaseException as error:
            self._processes.fail(error)
            raise

    def explanation(self) -> ExecutionExplanation:
        if self.size == 1:
            return ExecutionExplanation(
                notes=("There is one process, with nothing to divide: executed plainly.",)
            )
        notes = [f"This is process {self.rank} of {self.size}.", *self._notes]
        if self._small:
            notes.append(
                "Batches with fewer rows than there are processes, executed in each process: "
                f"{self._small}."
            )
        return ExecutionExplanation(choices=self._choices, notes=tuple(notes))

    def _compare_batches(self, batch: GlobalBatch) -> None:
        refuse_other_batches(
            self._processes.gathered_numbers(batch.fingerprint(), "the comparison of batches")
        )

    def _whole(self, batch: GlobalBatch) -> Any:
        """Execute the step on the whole batch in each process."""
        self._compare_batches(batch)
        return self._step(*batch.args, **batch.kwargs)

    def _choose(self, batch: GlobalBatch) -> Callable[[GlobalBatch], Any]:
        processes = self._processes
        args, kwargs = batch.share(self.rank, self.size)
        with without_random_numbers():
            before = _random_states()
            observed = observe(lambda: self._step(*args, **kwargs))
            random = not all(map(torch.equal, before, _random_states()))
        observed.restore()
        self._compare_models(observed)
        processes.share(observed.tensors)
        # With the values of process 0.
        with without_random_numbers():
            observed = observe(lambda: self._step(*args, **kwargs))
        observed.restore()
        random = any(processes.gathered(random, "the first step"))
        if random and not self._new_random_numbers:
            self._notes.append(
                "The whole batch is executed in each process: the step draws random numbers, "
                "which would be others. Pass new_random_numbers=True to allow that."
            )
            return self._whole
        exchange = GradientExchange(processes, observed.parameters, self._ways(observed))
        divided = [
            DividedStep(self._step, processes, exchange, observed, mean=mean, random=random)
            for mean in (True, False)
        ]
        if self._always_divide:
            self._notes.append("The results were not compared with those of one device.")
            return divided[0]
        with _without_dropout(observed.modules):
            chosen, choice = choose(
                [
                    ExecutionCandidate(name="the whole batch in each process", build=self._plain),
                    *(
                        ExecutionCandidate(name=each.name, build=functools.partial(_same, each))
                        for each in divided
                    ),
                ],
                ExecutionSample(
                    call=lambda function: function(batch),
                    result=lambda function: (function, observe(lambda: function(batch))),
                    restore=observed.restore,
                    difference=functools.partial(_difference, observed.names),
                    agreed=processes.longest,
                ),
                calls=self._calls,
                seconds=self._seconds,
            )
        self._choices["a step"] = choice
        if not isinstance(chosen, DividedStep):
            exchange.remove()
            return self._whole
        return chosen

    def _plain(self) -> Callable[[GlobalBatch], Any]:
        return self._whole

    def _compare_models(self, observed: ObservedStep) -> None:
        kinds = [(tuple(each.shape), str(each.dtype)) for each in observed.tensors]
        found = self._processes.gathered(kinds, "the first step")
        for rank, other in enumerate(found):
            if other != found[0]:
                raise InvalidInput(
                    f"The model of process {rank} has other weights than that of process 0, or "
                    "they have other shapes.",
                    accepted="The same program in each process.",
                )

    def _ways(self, observed: ObservedStep) -> dict[int, ExchangeWay]:
        """Choose how the gradients are summed that are sparse, or have few rows."""
        gradients = [observed.gradients.get(id(each)) for each in observed.parameters]
        kinds = self._processes.gathered(
            [None if each is None else (each.is_sparse, _by_rows(each)) for each in gradients],
            "the first step",
        )
        ways = {}
        for place, parameter in enumerate(observed.parameters):
            gradient = gradients[place]
            if gradient is None or not all(kind[place] and kind[place][1] for kind in kinds):
                continue
            name = observed.names.get(id(parameter), f"parameter {place}")
            ways[place] = self._way(name, parameter, gradient)
        return ways

    def _way(self, name: str, parameter: torch.Tensor, gradient: torch.Tensor) -> ExchangeWay:
        processes = self._processes
        functions: dict[ExchangeWay, Callable[[torch.Tensor], Any]] = {
            ExchangeWay.DENSE: functools.partial(dense_sum, processes),
            ExchangeWay.ROWS: lambda given: row_sums(processes, [parameter], [given])[0],
        }
        if gradient.is_sparse and not gradient.is_cuda and processes.gloo:
            functions[ExchangeWay.SPARSE] = functools.partial(sparse_sum, processes)
        changed = gradient.clone()

        def restore() -> None:
            if not gradient.is_sparse:
                changed.copy_(gradient)

        _, choice = choose(
            [
                ExecutionCandidate(name=way, build=functools.partial(_same, function))
                for way, function in functions.items()
            ],
            ExecutionSample(
                call=lambda function: function(changed),
                restore=restore,
                difference=_gradient_difference,
                agreed=processes.longest,
            ),
            calls=self._calls,
            seconds=self._seconds,
        )
        self._choices[f"the gradient of {name}"] = choice
        return ExchangeWay(choice.chosen)


class DividedStep:
    """A step of which each process executes a part of the batch.

    Args:
        mean: the loss is a mean over the batch, not a sum.
        random: the step draws random numbers.
    """

    def __init__(
        self,
        step: Callable[..., Any],
        processes: TrainingProcesses,
        exchange: GradientExchange,
        observed: ObservedStep,
        *,
        mean: bool,
        random: bool,
    ) -> None:
        self.name = f"the batch divided, {'mean' if mean else 'sum'} of gradients"
        self._step = step
        self._processes = processes
        self._exchange = exchange
        self._known = {id(each): each for each in observed.parameters}
        self._mean = mean
        self._random = random
        self._means: list[bool] | None = None
        self._last: dict[bool, torch.Tensor] = {}

    def learn_means(self, whole: Any) -> str:
        """Learn which numbers of the last result are means over the batch, and which are sums.

        Args:
            whole: the result of the step on the whole batch.

        Returns:
            The first one that is neither, as a sentence; empty if there is none.
        """
        self._means = []
        for place, leaf in enumerate(pytree.tree_leaves(whole)):
            number = _number(leaf)
            near = [
                mean
                for mean in (_is_mean(leaf), not _is_mean(leaf))
                if _near(number, float(self._last[mean][place]), leaf)
            ]
            if not near:
                return (
                    f"number {place + 1} of the result is {number:.6g} for the whole batch, but "
                    f"{float(self._last[True][place]):.6g} as mean and "
                    f"{float(self._last[False][place]):.6g} as sum of the parts"
                )
            self._means.append(near[0])
        return ""

    def __call__(self, batch: GlobalBatch) -> Any:
        try:
            return self._divided(batch)
        except BaseException as error:
            self._processes.fail(error)
            raise

    def _divided(self, batch: GlobalBatch) -> Any:
        processes = self._processes
        args, kwargs = batch.share(processes.rank, processes.size)
        parts = batch.parts(processes.size)
        with self._random_numbers(), refusing_other_parameters(self._known):
            self._exchange.begin(parts[processes.rank] if self._mean else 1.0)
            try:
                result = self._step(*args, **kwargs)
            finally:
                self._exchange.end()
        leaves, form = pytree.tree_flatten(result)
        numbers = torch.tensor([_number(each) for each in leaves], dtype=torch.float64)
        # With the fingerprint, because each exchange is a wait for the slowest process.
        sent = torch.cat([batch.fingerprint(), numbers])
        received = processes.gathered_numbers(sent, "the sum of losses")
        prints, by_rank = received.split([len(sent) - len(numbers), len(numbers)], dim=1)
        refuse_other_batches(prints)
        means = self._means or [_is_mean(each) for each in leaves]
        weights = torch.tensor(parts, dtype=torch.float64)
        self._last = {True: weights @ by_rank, False: by_rank.sum(0)}
        combined = [
            _like(leaf, float(self._last[mean][place]))
            for place, (leaf, mean) in enumerate(zip(leaves, means, strict=True))
        ]
        return pytree.tree_unflatten(combined, form)

    @contextmanager
    def _random_numbers(self) -> Iterator[None]:
        """Draw other random numbers in each process; the generators stay the same in all."""
        if not self._random:
            yield
            return
        seed = int(torch.randint(2**62, ()))
        with without_random_numbers():
            torch.manual_seed(seed + self._processes.rank)
            yield


def _difference(
    names: Mapping[int, str], plain: tuple[Any, ObservedStep], other: tuple[Any, ObservedStep]
) -> str:
    """Compare results and gradients of a step on the whole batch and a divided one."""
    (_, whole), (divided, found) = plain, other
    if sentence := divided.learn_means(whole.result):
        return str(sentence)
    if whole.gradients.keys() != found.gradients.keys():
        return "other parameters have gradients"
    largest = max(map(_largest, whole.gradients.values()), default=0.0)
    for key, gradient in whole.gradients.items():
        least = _SMALL_GRADIENT * largest
        if text := _gradient_difference(gradient, found.gradients[key], least):
            return f"the gradient of {names.get(key, 'a parameter')} {text}"
    return ""


def _gradient_difference(plain: torch.Tensor, other: torch.Tensor, least: float = 0.0) -> str:
    """Return the difference of two gradients of one layout as a sentence, empty where equal.

    Args:
        least: a smaller gradient may differ as much as one of this size.
    """
    if plain.is_sparse != other.is_sparse:
        return "has another layout"
    tolerance, largest = TOLERANCE[plain.dtype], _largest(plain)
    furthest = _largest(plain - other)
    if furthest <= tolerance * max(largest, least):  # not with NaN
        return ""
    return f"differs by {furthest:.1e}, and its largest element is {largest:.1e}"


def _largest(gradient: torch.Tensor) -> float:
    values = gradient.coalesce().values() if gradient.is_sparse else gradient
    return float(values.abs().max()) if values.numel() else 0.0


def _by_rows(gradient: torch.Tensor) -> bool:
    """Return whether a gradient may be sent by rows.

    Raises:
        InvalidInput: it is sparse in another way.
    """
    if not gradient.is_sparse:
        return mostly_zero_rows(gradient)
    if gradient.sparse_dim() != 1:
        raise InvalidInput(
            f"A gradient is sparse in {gradient.sparse_dim()} dimensions.",
            accepted="Sparse in its rows, as that of torch.nn.Embedding.",
        )
    return True


def _number(leaf: object) -> float:
    """Return a number of a result; NaN for None.

    Raises:
        InvalidInput: it is something else.
    """
    if leaf is None:
        return math.nan
    if isinstance(leaf, int | float):
        return float(leaf)
    if isinstance(leaf, torch.Tensor) and leaf.numel() == 1 and not leaf.is_complex():
        return float(leaf.detach())
    kind = f"a tensor of the shape {tuple(leaf.shape)}" if isinstance(leaf, torch.Tensor) else ""
    raise InvalidInput(
        f"The step returns {kind or type(leaf).__name__}.",
        accepted="Numbers and tensors of one number, that are means or sums over the batch.",
    )


def _is_mean(leaf: object) -> bool:
    """Return whether a number is a mean rather than a sum, as far as its type says."""
    if isinstance(leaf, torch.Tensor):
        return bool(leaf.is_floating_point())
    return not isinstance(leaf, int)


def _near(number: float, other: float, leaf: object) -> bool:
    if math.isnan(number) or math.isinf(number):
        return math.isnan(number) == math.isnan(other) and math.isinf(number) == math.isinf(other)
    dtype = leaf.dtype if isinstance(leaf, torch.Tensor) else torch.float32
    return math.isclose(number, other, rel_tol=TOLERANCE.get(dtype, 1e-9), abs_tol=1e-30)


def _like(leaf: Any, value: float) -> Any:
    """Return a number of the kind of another one."""
    if leaf is None:
        return None
    if isinstance(leaf, torch.Tensor):
        return torch.full_like(leaf.detach(), value if leaf.is_floating_point() else round(value))
    return type(leaf)(round(value) if isinstance(leaf, int) else value)


def _same(value: Any) -> Any:
    return value


def _random_states() -> list[torch.Tensor]:
    states = [torch.get_rng_state()]
    if torch.cuda.is_initialized():
        states += torch.cuda.get_rng_state_all()
    return states


@contextmanager
def _without_dropout(modules: Sequence[torch.nn.Module]) -> Iterator[None]:
    changed = [each for each in modules if isinstance(each, DROPOUT) and each.training]
    for each in changed:
        each.training = False
    try:
        yield
    finally:
        for each in changed:
            each.training = True
