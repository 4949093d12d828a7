"""``carrel.spark()``: a Spark session on this machine, with the cores and memory of the lease.

Driver and executor are one Java process; Python functions run in as many Python processes as there
are cores, or in fewer where the memory has no room for more. All listen on the loopback interface
only, with a secret, and there is no page of Spark.
"""

from __future__ import annotations

import math
import os
import sys
import sysconfig
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from ...hub.errors import Conflict, InvalidInput
from ...hub.messages import units
from ...hub.schemas import parsers
from . import java, lease_limits, scratch_folder
from .worker_daemon import FOLDERS_VARIABLE

LEAST_MEMORY: Final = 3 << 29
"""1.5 GiB: the Java process takes about half of it, the Python processes the rest."""
_MIB: Final = 1 << 20
_GIB: Final = 1 << 30
_LEAST_HEAP: Final = 512 * _MIB
_MOST_HEAP: Final = 16 << 30
_HEAP_PART: Final = 0.4
"""The part of the memory that is for objects of Java: Python's processes need the rest."""
_TASKS_OF_CORE: Final = 4
_HOST: Final = "127.0.0.1"
_PACKAGES: Final = ("pyspark", "pyarrow", "pandas")
_FIXED: Final = (
    "spark.authenticate",
    "spark.driver.bindAddress",
    "spark.driver.host",
    "spark.driver.memory",
    "spark.local.dir",
    "spark.master",
    "spark.ui.enabled",
)
"""Options that keep Spark within the lease and on the loopback interface."""


@dataclass(slots=True)
class _RunningSpark:
    """What this process has started: its Java process stays when a session is stopped.

    Attributes:
        options: of the last session.
        heap: bytes of the Java process; 0 before the first session.
        memory: bytes of the session or job before the Java process took its part; 0 if unknown.
    """

    session: Any = None
    options: Mapping[str, str] = field(default_factory=dict)
    heap: int = 0
    memory: int = 0
    scratch: Path | None = None


_running: Final = _RunningSpark()


def spark(
    name: str = "carrel",
    *,
    cores: int | None = None,
    memory: str | int | None = None,
    options: Mapping[str, str] | None = None,
) -> Any:
    """Return the Spark session of this process, started with what the lease has.

    >>> spark = carrel.spark()
    >>> frame = spark.createDataFrame(pandas_frame)

    Args:
        cores: at most those of the session or job. By default all, or fewer where the memory does
            not have room for a Python process on each; a warning says so.
        memory: of the Java process (``"4GiB"``, or bytes); by default two fifths of the memory of
            the session or job, at most 16 GiB. Python's processes use the rest.
        options: further options of Spark, by name.

    Raises:
        Conflict: a session with other options runs in this process.
        InvalidInput: more than the session or job has, or an option that Carrel sets.
        ModuleNotFoundError: a package is missing; the message says how to install it.
        Unavailable: there is no usable Java.
    """
    _check_packages()
    asked = dict(options or {})
    if fixed := sorted(asked.keys() & set(_FIXED)):
        raise InvalidInput(
            f"carrel.spark() sets {', '.join(fixed)} itself.",
            accepted="Use its arguments cores and memory, and other options of Spark.",
        )
    limit = _running.memory or lease_limits.memory_bytes()
    heap = _heap(memory, limit)
    used = _cores(cores, limit, _running.heap or heap)
    wanted = {"spark.app.name": name, "spark.master": f"local[{used}]", **asked}
    if found := _running_session(wanted, heap if memory is not None else 0):
        return found
    java.check()
    if cores is None and used < (present := lease_limits.cores()):
        warnings.warn(_fewer_cores(used, present, limit), stacklevel=2)
    return _start(wanted, _running.heap or heap, used, limit)


def _check_packages() -> None:
    missing = [name for name in _PACKAGES if find_spec(name) is None]
    if missing:
        raise ModuleNotFoundError(
            f"carrel.spark() needs {' and '.join(missing)}. Install with: pip install "
            "'carrel[spark]', or use the image spark.",
            name=missing[0],
        )


def _cores(asked: int | None, limit: int, heap: int) -> int:
    present = lease_limits.cores()
    if asked is None:
        return lease_limits.cores_within_memory(present, limit, heap)
    if isinstance(asked, bool) or not isinstance(asked, int) or not 1 <= asked <= present:
        raise InvalidInput(
            f"Spark cannot use {asked!r} cores.",
            accepted=f"A whole number from 1 to {present}, the cores of this session or job.",
            field="cores",
        )
    return asked


def _fewer_cores(used: int, present: int, limit: int) -> str:
    missing = (present - used) * lease_limits.PYTHON_PROCESS / (1 - _HEAP_PART)
    return (
        f"Spark uses {used} of {present} cores: {units.size(limit)} of memory have no room for a "
        "Python process on each. Submit the job with more, such as --memory "
        f"{math.ceil((limit + missing) / _GIB)}GiB, or name the cores: carrel.spark(cores={used})."
    )


def _heap(asked: str | int | None, limit: int) -> int:
    """Return the bytes of the Java process."""
    if limit and limit < LEAST_MEMORY:
        raise InvalidInput(
            f"Spark needs at least {units.size(LEAST_MEMORY)} of memory; there are "
            f"{units.size(limit)}.",
            accepted="Submit the job with more, such as --memory 4GiB.",
        )
    if asked is None:
        return int(min(max(limit * _HEAP_PART, _LEAST_HEAP), _MOST_HEAP))
    heap = parsers.memory_bytes(asked) if isinstance(asked, str) else asked
    most = limit or heap
    if not _LEAST_HEAP <= heap <= most:
        raise InvalidInput(
            f"The Java process of Spark cannot have {units.size(heap)}.",
            accepted=f"From {units.size(_LEAST_HEAP)} to {units.size(most)}, the memory of this "
            "session or job.",
            field="memory",
        )
    return heap


def _running_session(wanted: Mapping[str, str], heap: int) -> Any:
    """Return the running session of this process if it is the wanted one; None if there is none.

    Args:
        heap: bytes of the Java process, if the user has named them.

    Raises:
        Conflict: it has other options.
    """
    from pyspark import SparkContext  # noqa: PLC0415 # not needed for the client

    if _running.heap and heap not in (0, _running.heap):
        raise Conflict(
            f"The Java process of Spark has {units.size(_running.heap)} of memory, which cannot "
            "change.",
            accepted="Restart the kernel.",
        )
    if SparkContext._active_spark_context is None:  # there is no public name
        if not _running.heap and SparkContext._gateway is not None:
            raise Conflict(
                "The Java process of another Spark session runs in this process.",
                accepted="Restart the kernel, and call carrel.spark() first.",
            )
        return None
    if _running.session is None or dict(_running.options) != dict(wanted):
        raise Conflict(
            "A Spark session with other options runs in this process.",
            accepted="Call its stop() first.",
        )
    return _running.session


def _start(wanted: Mapping[str, str], heap: int, cores: int, limit: int) -> Any:
    from pyspark import SparkContext  # noqa: PLC0415 # not needed for the client
    from pyspark.sql import SparkSession  # noqa: PLC0415 # the same

    scratch = _running.scratch or scratch_folder.make()
    builder = SparkSession.builder
    for option, value in {**_options(heap, cores, scratch), **wanted}.items():
        builder = builder.config(option, value)
    _running.scratch = scratch
    try:
        with _start_variables(scratch):
            session = builder.getOrCreate()
    finally:
        # A Java process that was started stays, also if Spark refuses an option.
        if SparkContext._gateway is not None:
            _running.heap, _running.memory = heap, limit
    _running.session, _running.options = session, dict(wanted)
    return session


def _options(heap: int, cores: int, scratch: Path) -> dict[str, str]:
    return {
        "spark.driver.memory": f"{heap // _MIB}m",
        "spark.driver.host": _HOST,
        "spark.driver.bindAddress": _HOST,
        # Other users of the machine reach the loopback interface, too.
        "spark.authenticate": "true",
        "spark.driver.extraJavaOptions": (
            f"-XX:ActiveProcessorCount={cores} -XX:-UsePerfData -Djava.io.tmpdir={scratch}"
        ),
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.local.dir": str(scratch),
        "spark.sql.warehouse.dir": str(scratch / "warehouse"),
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.shuffle.partitions": str(cores),
        # Folders of small files, such as pictures: a few tasks a core, instead of one for each file
        # that is listed, and one for each 32 that are read.
        "spark.sql.sources.parallelPartitionDiscovery.parallelism": str(cores),
        "spark.sql.files.openCostInBytes": "65536",
        "spark.sql.files.minPartitionNum": str(_TASKS_OF_CORE * cores),
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "1024",
        "spark.python.daemon.module": "carrel.extensions.spark.worker_daemon",
        # The folder of the notebook is not in front of the standard library.
        "spark.executorEnv.PYTHONSAFEPATH": "1",
        f"spark.executorEnv.{FOLDERS_VARIABLE}": os.pathsep.join(_module_folders()),
        "spark.executorEnv.OMP_NUM_THREADS": "1",
        "spark.log.level": "ERROR",
    }


def _module_folders() -> Iterator[str]:
    """Yield the folders from which this process imports, but that a new one does not have."""
    standard = {sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    for folder in dict.fromkeys(os.path.abspath(each) for each in sys.path):
        if Path(folder).is_dir() and folder not in standard:
            yield folder


@contextmanager
def _start_variables(scratch: Path) -> Iterator[None]:
    """Start Spark with variables that overrule its options, and put the old ones back."""
    changed = {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": _HOST,
        "SPARK_LOCAL_HOSTNAME": "localhost",
        "SPARK_LOCAL_DIRS": str(scratch),
    }
    before = {name: os.environ.get(name) for name in changed}
    os.environ.update(changed)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
