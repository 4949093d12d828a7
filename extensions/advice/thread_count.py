"""The number of threads that NumPy, scikit-learn and PyTorch use in this process."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress


def processors() -> int:
    """Return how many processors this process may use."""
    with suppress(AttributeError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def can_limit() -> bool:
    """Whether ``threads`` has any effect: PyTorch is imported, or threadpoolctl installed."""
    return "torch" in sys.modules or _threadpools() is not None


def _threadpools() -> type | None:
    with suppress(ImportError):
        found: type = importlib.import_module("threadpoolctl").threadpool_limits
        return found
    return None


@contextmanager
def threads(number: int | None) -> Iterator[None]:
    """Limit the threads in the block; None leaves them as they are."""
    if number is None:
        yield
        return
    with ExitStack() as stack:
        pools = _threadpools()
        if pools is not None:
            stack.enter_context(pools(limits=number))
        torch = sys.modules.get("torch")
        if torch is not None:
            stack.callback(torch.set_num_threads, torch.get_num_threads())
            torch.set_num_threads(number)
        yield
