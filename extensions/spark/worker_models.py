"""Send a model to Spark's Python processes once, where each loads it once."""

from __future__ import annotations

import gc
import hashlib
import pickle
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final

from ...hub.errors import InvalidInput

_MOST_LOADED: Final = 4
"""Models that a Python process keeps; the one used longest ago is dropped first."""
_loaded: Final[OrderedDict[str, Any]] = OrderedDict()


@dataclass(frozen=True, slots=True, kw_only=True)
class BroadcastModel:
    """A model on its way to the Python processes.

    Attributes:
        digest: SHA-256 of its pickle; equal models are loaded once.
        pickled: Spark's broadcast variable.
    """

    digest: str
    pickled: Any

    def load(self) -> Any:
        """Return the model, in a Python process of Spark."""
        if self.digest not in _loaded:
            with _objects_kept():
                # Of this session.
                _loaded[self.digest] = pickle.loads(self.pickled.value)  # noqa: S301
                while len(_loaded) > _MOST_LOADED:
                    _loaded.popitem(last=False)
        _loaded.move_to_end(self.digest)
        return _loaded[self.digest]


@contextmanager
def _objects_kept() -> Iterator[None]:
    """Exclude the objects that there are after the block from garbage collection.

    Spark collects garbage after each task, which takes 0.1 s with PyTorch and pandas.
    """
    gc.unfreeze()
    try:
        yield
    finally:
        gc.collect()
        gc.freeze()


def broadcast(session: Any, model: Any) -> BroadcastModel:
    """Pickle a model, whose class may be that of a notebook, and make it known to the processes.

    Raises:
        InvalidInput: it cannot be pickled.
    """
    from pyspark import cloudpickle  # noqa: PLC0415 # not needed for the client

    try:
        pickled = cloudpickle.dumps(model)
    except Exception as error:  # of any type
        raise InvalidInput(
            f"{type(model).__name__} cannot be sent to Spark's processes: "
            f"{type(error).__name__}: {error}",
            accepted="A model that can be pickled.",
        ) from error
    digest = hashlib.sha256(pickled).hexdigest()
    return BroadcastModel(digest=digest, pickled=session.sparkContext.broadcast(pickled))
